#include "sim/engine/gpu_sharing.h"

#include <algorithm>

namespace dcsim {

GpuSharing::Options GpuSharing::Options::Of(const SimulationOptions& simulation, int ranks) {
  Options options;
  options.contention = simulation.contention;
  options.ranks = ranks;
  options.collective_gap = simulation.collective_gap.ns();
  options.start_gap = simulation.start_gap.ns();
  options.collective_start = simulation.contention.CollectiveStart(ranks).ns();
  options.queued_gap = simulation.queued_gap.ns();
  return options;
}

bool GpuSharing::OnlyComputeRuns() const {
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    if (s != kCompute && streams_[s].running) {
      return false;
    }
  }
  return true;
}

std::uint32_t GpuSharing::WithoutKernel() const {
  std::uint32_t found = 0;
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    const Phase phase = streams_[s].phase;
    const bool without = phase == Phase::kHeld || (s == kCompute && phase == Phase::kArriving);
    found |= streams_[s].running && without ? 1U << s : 0;
  }
  return found;
}

bool GpuSharing::CollectiveRuns() const {
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    if (Disturbs(s) && streams_[s].task.use == DeviceUse::kCollective) {
      return true;
    }
  }
  return false;
}

void GpuSharing::Start(
    std::size_t stream, const GpuTask& task, bool at_once, std::size_t position, std::int64_t now) {
  Stream& state = streams_[stream];
  if (stream == kCompute && !at_once && (collective_ended_ == now || OnlyComputeRuns())) {
    together_ = now;
  }
  state.after_copy = at_once && state.task.use == DeviceUse::kSideStreaming;
  state.task = task;
  state.own_shard = false;
  state.displaced_by = 0;
  state.own_end = 0;
  state.started = now;
  if (task.device == 0) {
    End(stream, now);
    return;
  }
  state.running = true;
  copies_ |= task.use == DeviceUse::kSideStreaming ? 1U << stream : 0;
  if (task.use == DeviceUse::kCollective) {
    state.phase = Phase::kArriving;
    state.queued = at_once;
    state.event = now + (at_once ? options_.queued_gap : GapBefore(now));
    const bool behind_collective = collective_ended_ == now;
    if (!at_once && stream != kCompute && !behind_collective && ComesFirst(stream, position)) {
      HoldCompute(now);
    }
    return;
  }
  if (const std::int64_t before = at_once ? 0 : task.start; before > 0) {
    state.phase = Phase::kArriving;
    state.event = now + before;
    return;
  }
  Arrive(stream, now);
}

/// Before a collective that something else than a task of its stream let start. Where compute waits
/// for it, ranks are as far apart as they have drifted since they last went on together.
std::int64_t GpuSharing::GapBefore(std::int64_t now) const {
  if (MeetsDriftedRanks()) {
    ++apart_asked_;
    return options_.start_gap +
           options_.contention.IdleWait(Duration::FromNs(now - together_)).ns();
  }
  return !peers_.empty() ? options_.start_gap : options_.collective_gap;
}

/// Whether this rank's collective is one of those that start before the kernel which the same event
/// let start. A hash, so that it is the same whenever it is asked.
bool GpuSharing::ComesFirst(std::size_t stream, std::size_t position) const {
  if (peers_.empty()) {
    return false;
  }
  std::uint64_t mixed = (std::uint64_t{rank_} << 40U | std::uint64_t{stream} << 32U | position) + 1;
  mixed *= 0x9e3779b97f4a7c15U;  // SplitMix64's finalizer
  mixed = (mixed ^ mixed >> 30U) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ mixed >> 27U) * 0x94d049bb133111ebU;
  mixed ^= mixed >> 31U;
  return Share::FromPermille(static_cast<std::int64_t>(mixed % Share::kWhole)) <
         options_.contention.comes_first;
}

/// What the compute stream has just started comes behind a collective that starts now.
void GpuSharing::HoldCompute(std::int64_t now) {
  Stream& compute = streams_[kCompute];
  if (!compute.running || compute.started != now) {
    return;
  }
  const std::int64_t later = now + options_.contention.first_delay.ns();
  const bool arrived = compute.phase != Phase::kArriving;
  compute.event = arrived ? later : std::max(compute.event, later);
  compute.phase = Phase::kArriving;
  disturbed_ = true;
}

/// Of a collective that gets as far as this phase's end: whether another rank's has not yet, so
/// that it waits in it. The one that comes last lets all go on.
bool GpuSharing::WaitForPeers(std::size_t stream, Phase phase, std::int64_t now) {
  Stream& state = streams_[stream];
  if (peers_.empty() || state.task.use != DeviceUse::kCollective) {
    return false;
  }
  const bool last = std::all_of(peers_.begin(), peers_.end(), [&](const GpuSharing* peer) {
    const Stream& other = peer->streams_[stream];
    return other.running && other.phase == phase;
  });
  if (!last) {
    state.phase = phase;
    state.event = kNever;
    return true;
  }
  for (GpuSharing* const peer : peers_) {
    peer->streams_[stream].event = now;
    peer->woken_ = true;
  }
  return false;
}

bool GpuSharing::Advance(std::size_t stream, std::int64_t now) {
  switch (streams_[stream].phase) {
    case Phase::kArriving:
      Arrive(stream, now);
      return false;
    case Phase::kHeld:
      FindRoom(stream, now);
      return false;
    case Phase::kMeeting:
      BeginWork(stream, now);
      return false;
    case Phase::kWorking:
      if (streams_[stream].task.use == DeviceUse::kCollective &&
          WorkLeft(streams_[stream], now) > 0) {
        streams_[stream].event = WorkEnd(streams_[stream]);
        disturbed_ = true;  // no longer by others' gathers
        return false;
      }
      if (TurnToOwnShard(stream, now)) {
        return false;
      }
      if (streams_[stream].displaced_by != 0) {
        FindPlaces(now);  // those of its thread blocks that have ended
        return false;
      }
      if (WaitForPeers(stream, Phase::kFinishing, now)) {
        return false;
      }
      break;
    case Phase::kFinishing:
      break;
  }
  End(stream, now);
  return true;
}

/// The running task is on the GPU, where thread blocks of other streams may leave no room.
void GpuSharing::Arrive(std::size_t stream, std::int64_t now) {
  Stream& state = streams_[stream];
  disturbed_ = true;
  if (stream != kCompute && ComesBeforeCompute(state)) {
    Stream& compute = streams_[kCompute];
    compute.leaves_room = true;
    compute.displaced_by |= compute.task.own_tiles > 0 ? 1U << stream : 0;
  }
  SeekRoom(stream, now);
}

/// What the running task has read of other ranks' memory, if anything, is here. As far back as
/// ranks may be apart it still tells what others do.
void GpuSharing::EndReads(const Stream& state, std::int64_t now) {
  if (ReadsPeers(state)) {
    reads_.End(now, options_.contention.most_apart.ns());
  }
}

/// A gather by copy engines, whose own shard the driver copies with multiprocessors, last: true
/// when it goes on with that.
bool GpuSharing::TurnToOwnShard(std::size_t stream, std::int64_t now) {
  Stream& state = streams_[stream];
  if (state.own_shard || state.task.own_shard == 0) {
    return false;
  }
  EndReads(state, now);
  state.own_shard = true;
  disturbed_ = true;
  SeekRoom(stream, now);
  return true;
}

std::int64_t GpuSharing::WorkLeft(const Stream& state, std::int64_t now) {
  const std::int64_t done = state.work_rate.WorkIn(now - state.work_updated);
  return std::max<std::int64_t>(0, state.work_left - done);
}

/// When the work that is left ends at the speed of now.
std::int64_t GpuSharing::WorkEnd(const Stream& state) {
  return state.work_updated + state.work_rate.TimeFor(state.work_left);
}

/// From here on the running task gets on, and takes of others' speed.
void GpuSharing::BeginWork(std::size_t stream, std::int64_t now) {
  Stream& state = streams_[stream];
  const std::int64_t start = state.meets ? options_.collective_start : 0;
  state.meets = false;
  state.phase = Phase::kWorking;
  const std::int64_t work =
      state.own_shard ? state.task.own_shard : state.task.device - state.task.own_shard + start;
  state.work_left = work * Rate::kWorkOfNs;
  state.work_updated = now;
  state.work_rate = Rate();
  state.event = now + work;
  disturbed_ = true;
  if (ReadsPeers(state)) {
    reads_.Begin(now);
  }
}

void GpuSharing::End(std::size_t stream, std::int64_t now) {
  Stream& state = streams_[stream];
  if (state.running) {
    EndReads(state, now);
  }
  state.running = false;
  state.event = kNever;
  copies_ &= ~(1U << stream);
  disturbed_ = true;
  if (state.task.use == DeviceUse::kCollective) {
    collective_ended_ = now;
  }
  // What waited for the multiprocessors of this kernel gets them.
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    if (streams_[s].running && streams_[s].phase == Phase::kHeld && streams_[s].held_by == stream) {
      FindRoom(s, now);
    }
  }
}

void GpuSharing::RunOn(const GpuTask& task, std::int64_t start, std::int64_t together) {
  Stream& compute = streams_[kCompute];
  together_ = together;
  compute.task = task;
  compute.started = start;
  compute.arrived = start;
  compute.leaves_room = false;
  compute.displaced_by = 0;
  compute.own_end = 0;
  BeginWork(kCompute, start);
}

}  // namespace dcsim
