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
  return static_cast<int>(mixed % Contention::kAlone) < options_.contention.first_permille;
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

/// Whether a collective gets its multiprocessors before an op that went on at the same time, as a
/// collective of another stream ended: the communicator let the one start, an event the other. A
/// kernel is there first, but not the large one behind it of an op of several.
bool GpuSharing::ComesBeforeCompute(const Stream& state) const {
  const Stream& compute = streams_[kCompute];
  return options_.contention.measured && state.task.use == DeviceUse::kCollective &&
         !IsSmall(state) && !state.queued && state.started == collective_ended_ &&
         compute.running && compute.started >= state.started && compute.task.launches > 1;
}

/// A collective of few thread blocks keeps no multiprocessor from others that they miss: the last
/// thread blocks of a product, which would wait, have fewer tiles than the others. Nor does a side
/// stream's task of many short copies, which are mostly launched.
bool GpuSharing::IsSmall(const Stream& state) {
  const DeviceUse use = state.task.use;
  return (use == DeviceUse::kCollective || use == DeviceUse::kSideStreaming) &&
         2 * state.task.demand < Contention::kAlone;
}

/// Streams whose kernels keep multiprocessors from one that starts now, a bit each.
std::uint32_t GpuSharing::Displacers() const {
  std::uint32_t found = 0;
  for (std::size_t s = 0; s < kStreamCount && options_.contention.measured; ++s) {
    const Stream& side = streams_[s];
    if (s != kCompute && TakesMultiprocessors(side) && Disturbs(s) && !IsSmall(side) &&
        RateOfManyKernels(side) == 0) {
      found |= 1U << s;
    }
  }
  return found;
}

/// Kernels that have made room for a kernel's waiting thread blocks no longer keep it. What follows
/// a copy at once takes the copy's place before them.
void GpuSharing::DropDisplacers(std::int64_t now) {
  Stream& compute = streams_[kCompute];
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    const Stream& side = streams_[s];
    const bool stays = side.running && (side.started <= compute.arrived || side.after_copy);
    if (!stays) {
      compute.displaced_by &= ~(1U << s);
    }
  }
  if (compute.displaced_by == 0) {
    FindPlaces(now);
  }
}

/// The thread blocks of a kernel that waited have places, and compute their own tiles.
void GpuSharing::FindPlaces(std::int64_t now) {
  Stream& compute = streams_[kCompute];
  compute.displaced_by = 0;
  compute.leaves_room = false;
  compute.own_end = now + compute.task.own_tiles;
  compute.event = std::max(WorkEnd(compute), compute.own_end);
}

/// What needs multiprocessors waits for them: side streams behind compute, compute and collectives
/// behind a kernel of another side stream.
void GpuSharing::SeekRoom(std::size_t stream, std::int64_t now) {
  Stream& state = streams_[stream];
  std::int64_t room = stream == kCompute ? 0 : RoomBehindCompute(state, now);
  state.held_by = kCompute;
  const bool behind_copies =
      stream == kCompute ? copies_ != 0 : state.task.use == DeviceUse::kCollective;
  if (behind_copies && options_.contention.measured) {
    for (std::size_t s = 0; s < kStreamCount; ++s) {
      const std::int64_t behind = RoomBehindCopy(stream, streams_[s], now);
      state.held_by = behind > room ? s : state.held_by;
      room = std::max(room, behind);
    }
  }
  if (room > 0) {
    state.phase = Phase::kHeld;
    state.event = now + room;
  } else {
    FindRoom(stream, now);
  }
}

/// A gather by copy engines, whose own shard the driver copies with multiprocessors, last: true
/// when it goes on with that.
bool GpuSharing::TurnToOwnShard(std::size_t stream, std::int64_t now) {
  Stream& state = streams_[stream];
  if (state.own_shard || state.task.own_shard == 0) {
    return false;
  }
  state.own_shard = true;
  peers_read_ = now;
  disturbed_ = true;
  SeekRoom(stream, now);
  return true;
}

std::int64_t GpuSharing::WorkLeft(const Stream& state, std::int64_t now) {
  const std::int64_t done = (now - state.work_updated) * state.work_rate;
  return std::max<std::int64_t>(0, state.work_left - done);
}

/// When the work that is left ends at the speed of now.
std::int64_t GpuSharing::WorkEnd(const Stream& state) {
  return state.work_updated + (state.work_left + state.work_rate - 1) / state.work_rate;
}

/// Of a side stream's copy that has begun: whether a kernel of compute that comes does not wait for
/// it. An own shard's thread blocks leave it room, and so do many kernels beside long ones of
/// compute; products and attention wait for the one that runs where it did not wait for compute.
bool GpuSharing::LeavesComputeRoom(const Stream& copy) const {
  const std::int32_t many = RateOfManyKernels(copy);
  if (many == 0 || many == Contention::kAlone) {
    return copy.own_shard;
  }
  return streams_[kCompute].task.use == DeviceUse::kStreaming || copy.work_rate <= many;
}

/// How long what arrives on `stream`, a collective or a kernel of compute, waits for a side
/// stream's copies: side streams have one priority, and compute a lower one, so the thread blocks
/// of a kernel that has begun come first, to its end. Those of an own shard leave compute room.
std::int64_t GpuSharing::RoomBehindCopy(std::size_t stream,
                                        const Stream& copy,
                                        std::int64_t now) const {
  const bool first = copy.running && copy.phase == Phase::kWorking && copy.started < now &&
                     UseOf(copy) == DeviceUse::kSideStreaming && !IsSmall(copy);
  if (!first || (stream == kCompute && LeavesComputeRoom(copy))) {
    return 0;
  }
  const std::int64_t kernel = std::max<std::int64_t>(1, copy.task.KernelTime());
  const std::int64_t left = WorkLeft(copy, now) / Contention::kAlone;
  return left % kernel * Contention::kAlone / copy.work_rate;
}

/// How long a task that arrives waits for multiprocessors, at most. What the compute stream starts
/// at the same time comes second: other streams have the higher priority.
std::int64_t GpuSharing::RoomBehindCompute(const Stream& state, std::int64_t now) const {
  const Stream& compute = streams_[kCompute];
  const bool first = compute.running && compute.phase == Phase::kWorking && compute.arrived < now &&
                     !compute.leaves_room;
  if (!options_.contention.measured || !TakesMultiprocessors(state) || !first) {
    return 0;
  }
  if (compute.displaced_by != 0 || compute.own_end > 0) {
    return std::max<std::int64_t>(0, compute.places_free - now);
  }
  if (UseOf(state) != DeviceUse::kSideStreaming) {
    return compute.task.room;
  }
  if (compute.task.use == DeviceUse::kAttention) {
    return 0;  // its thread blocks take the shared memory, which a copy does without
  }
  // A copy is content with the multiprocessors that a product's last wave leaves.
  const std::int64_t left = WorkLeft(compute, now) - compute.task.last_wave * Contention::kAlone;
  return std::min(compute.task.room, std::max<std::int64_t>(0, left / compute.work_rate));
}

/// Multiprocessors are free for the running task; a collective then waits for the other ranks.
void GpuSharing::FindRoom(std::size_t stream, std::int64_t now) {
  Stream& state = streams_[stream];
  if (stream == kCompute) {
    state.arrived = now;
    state.leaves_room = CollectiveRuns();
    state.displaced_by = state.task.own_tiles > 0 ? Displacers() : 0;
    state.places_free = now + state.task.own_latest;
    BeginWork(stream, now);
    return;
  }
  state.meets = options_.contention.measured && state.task.use == DeviceUse::kCollective &&
                (state.phase == Phase::kHeld || streams_[kCompute].running);
  disturbed_ = true;
  if (!WaitForPeers(stream, Phase::kMeeting, now)) {
    BeginWork(stream, now);
  }
}

/// From here on the running task gets on, and takes of others' speed.
void GpuSharing::BeginWork(std::size_t stream, std::int64_t now) {
  Stream& state = streams_[stream];
  const std::int64_t start = state.meets ? options_.collective_start : 0;
  state.meets = false;
  state.phase = Phase::kWorking;
  const std::int64_t work =
      state.own_shard ? state.task.own_shard : state.task.device - state.task.own_shard + start;
  state.work_left = work * Contention::kAlone;
  state.work_updated = now;
  state.work_rate = Contention::kAlone;
  state.event = now + work;
  disturbed_ = true;
}

void GpuSharing::End(std::size_t stream, std::int64_t now) {
  Stream& state = streams_[stream];
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
