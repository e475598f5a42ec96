#include <algorithm>

#include "sim/engine/gpu_sharing.h"

namespace dcsim {

/// Adds what a stream's task does; times that nobody asks for any more are left out.
void GpuSharing::AddStream(std::size_t stream,
                           std::int64_t now,
                           std::vector<std::int64_t>& state) const {
  const Stream& own = streams_[stream];
  const auto add = [&state](auto number) { state.push_back(static_cast<std::int64_t>(number)); };
  for (const bool flag : {own.running, own.queued, own.meets, own.leaves_room, own.own_shard,
                          own.after_copy, own.own_end > 0}) {
    add(flag);
  }
  add(own.phase);
  add(own.held_by);
  add(own.displaced_by);
  add(own.task.use);
  add(own.task.demand.permille());
  add(own.task.device);
  if (!own.running) {
    return;
  }
  add(own.started - now);
  add(own.event == kNever ? kNever : own.event - now);
  if (own.phase != Phase::kWorking) {
    return;
  }
  add(own.work_left);
  add(own.work_updated - now);
  add(own.work_rate.permille());
  if (stream == kCompute) {
    add(own.arrived - now);
    add(own.displaced_by != 0 || own.own_end > 0 ? own.places_free - now : kNever);
    add(own.own_end > 0 ? own.own_end - now : kNever);
  }
}

void GpuSharing::AddState(std::int64_t now, std::vector<std::int64_t>& state) const {
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    AddStream(s, now, state);
  }
  const bool asked = collective_ended_ == now ||
                     std::any_of(streams_.begin(), streams_.end(), [this](const Stream& each) {
                       return each.running && each.started == collective_ended_;
                     });
  state.push_back(asked ? collective_ended_ - now : kNever);
  state.push_back(woken_ ? 1 : 0);
  state.push_back(disturbed_ ? 1 : 0);
  reads_.AddState(now, options_.contention.most_apart.ns(), state);
}

void GpuSharing::AddApart(std::int64_t now, std::vector<std::int64_t>& state) const {
  if (RanksDrift()) {
    const Contention& contention = options_.contention;
    const bool most =
        contention.IdleWait(Duration::FromNs(now - together_)) == contention.most_apart;
    state.push_back(most ? kNever : now - together_);
  }
}

}  // namespace dcsim
