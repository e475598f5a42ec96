#include <algorithm>

#include "sim/engine/gpu_sharing.h"

namespace dcsim {

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
         2 * state.task.demand.permille() < Share::kWhole;
}

/// Streams whose kernels keep multiprocessors from one that starts now, a bit each.
std::uint32_t GpuSharing::Displacers() const {
  std::uint32_t found = 0;
  for (std::size_t s = 0; s < kStreamCount && options_.contention.measured; ++s) {
    const Stream& side = streams_[s];
    if (s != kCompute && TakesMultiprocessors(side) && Disturbs(s) && !IsSmall(side) &&
        !RateOfManyKernels(side)) {
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

/// Of a side stream's copy that has begun: whether a kernel of compute that comes does not wait for
/// it. An own shard's thread blocks leave it room, and so do many kernels beside long ones of
/// compute; products and attention wait for the one that runs where it did not wait for compute.
bool GpuSharing::LeavesComputeRoom(const Stream& copy) const {
  const std::optional<Rate> many = RateOfManyKernels(copy);
  if (!many || many->alone()) {
    return copy.own_shard;
  }
  return streams_[kCompute].task.use == DeviceUse::kStreaming || copy.work_rate <= *many;
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
  const std::int64_t left = WorkLeft(copy, now) / Rate::kWorkOfNs;
  return copy.work_rate.Stretch(left % copy.task.KernelTime());
}

/// How long a task that arrives waits for multiprocessors, at most. A kernel of compute that
/// arrives at the same time comes second: other streams have the higher priority.
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
  const std::int64_t left = WorkLeft(compute, now) - compute.task.last_wave * Rate::kWorkOfNs;
  return std::min(compute.task.room,
                  std::max<std::int64_t>(0, left) / compute.work_rate.permille());
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

}  // namespace dcsim
