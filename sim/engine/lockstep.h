#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/ir/schedule.h"
#include "sim/engine/gpu_sharing.h"

namespace dcsim {

/// Ranks that have begun, step by step in the order of time until one has stopped or nothing
/// happens any more; of events at one time the first rank's. Collectives wait for all. At most
/// kRanksTold, at least two.
///
///   Run   has NextEvent(), whose `at` is kNever without one and which only a Step() or a peer's
///         changes (GpuSharing::TakeWoken), Step(next), gpu(), stopped()
template <typename Run>
void RunInLockstep(std::span<Run* const> runs) {
  std::array<decltype(runs[0]->NextEvent()), kRanksTold> next;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    next[i] = runs[i]->NextEvent();
  }
  const auto stopped = [](const Run* run) { return run->stopped(); };
  while (!std::any_of(runs.begin(), runs.end(), stopped)) {
    std::size_t first = 0;
    for (std::size_t i = 1; i < runs.size(); ++i) {
      first = next[i].at < next[first].at ? i : first;
    }
    if (next[first].at == GpuSharing::kNever) {
      return;
    }
    runs[first]->Step(next[first]);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (runs[i]->gpu().TakeWoken() || i == first) {
        next[i] = runs[i]->NextEvent();
      }
    }
  }
}

}  // namespace dcsim
