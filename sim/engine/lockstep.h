#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/engine/gpu_sharing.h"

namespace dcsim {

/// Two ranks that have begun, step by step in the order of time until one has stopped or nothing
/// happens any more; of events at one time the first rank's. Collectives wait for both.
///
///   Run   has NextEvent(), whose `at` is kNever without one and which only a Step() or the peer's
///         changes (GpuSharing::TakeWoken), Step(next), gpu(), stopped()
template <typename Run>
void RunInLockstep(Run& first, Run& second) {
  auto next = first.NextEvent();
  auto seconds_next = second.NextEvent();
  const auto step = [](Run& run, auto& its_next, Run& peer, auto& peers_next) {
    run.Step(its_next);
    its_next = run.NextEvent();
    peers_next = peer.gpu().TakeWoken() ? peer.NextEvent() : peers_next;
  };
  while (!first.stopped() && !second.stopped() &&
         std::min(next.at, seconds_next.at) != GpuSharing::kNever) {
    if (seconds_next.at < next.at) {
      step(second, seconds_next, first, next);
    } else {
      step(first, next, second, seconds_next);
    }
  }
}

}  // namespace dcsim
