#include <algorithm>

#include "sim/engine/gpu_sharing.h"

namespace dcsim {

/// What a running task occupies now: the own shard of a gather by copy engines is a copy by
/// multiprocessors.
DeviceUse GpuSharing::UseOf(const Stream& state) {
  return state.own_shard ? DeviceUse::kSideStreaming : state.task.use;
}

/// Whether what a side stream runs now is a kernel, which needs multiprocessors.
bool GpuSharing::TakesMultiprocessors(const Stream& state) {
  const DeviceUse use = UseOf(state);
  return use == DeviceUse::kSideStreaming || use == DeviceUse::kCollective;
}

/// Speed of what takes `longer` beside full memory traffic, beside `load` of it; all per mille.
std::int32_t GpuSharing::BesideMemoryTraffic(std::int32_t longer, std::int32_t load) {
  constexpr std::int64_t kAlone = Contention::kAlone;
  const std::int64_t time = kAlone + std::int64_t{longer} * load / kAlone;
  return static_cast<std::int32_t>(kAlone * kAlone / time);
}

/// Whether what it moves now waits for the memory's bandwidth by a law of its own, not its class's.
bool GpuSharing::WaitsForMemory(const Stream& state) const {
  const bool gather = ReadsPeers(state) && state.task.beside_memory > 0;
  return gather ||
         (UseOf(state) == DeviceUse::kCollective && options_.contention.beside_memory.has_value());
}

/// Speed of a side stream's copy in the last wave of compute's product, which leaves it some
/// multiprocessors; 0 where that is not known.
std::int32_t GpuSharing::RateInLastWave(const Stream& side) const {
  const GpuTask& compute = streams_[kCompute].task;
  const int needed = options_.contention.copy_multiprocessors;
  if (compute.use != DeviceUse::kMatmul || compute.last_free == 0 || needed == 0) {
    return 0;
  }
  return side.task.RateOnMultiprocessors(compute.last_free, needed);
}

/// For how much of their time alone compute's product or attention leaves room, at its end, for
/// many kernels of a side stream, and how much later the next one comes for the last of them, which
/// lasts longer.
std::pair<std::int64_t, std::int64_t> GpuSharing::RoomForManyKernels(const Stream& side) const {
  const GpuTask& compute = streams_[kCompute].task;
  std::int64_t room = options_.contention.side_kernels->between.ns();
  if (compute.use == DeviceUse::kMatmul) {
    room += compute.last_wave * RateInLastWave(side) / Contention::kAlone;
  } else {
    room = std::max(room, compute.LastRound());
  }
  return {room, std::max<std::int64_t>(0, side.task.KernelTime() - room)};
}

/// Speed beside compute of a side stream's task of many kernels, each of which has to find
/// multiprocessors: 0 where nothing is known of it, or it is none. All of it beside short kernels,
/// between two of which one comes.
std::int32_t GpuSharing::RateOfManyKernels(const Stream& side) const {
  const auto& kernels = options_.contention.side_kernels;
  if (!kernels || side.task.use != DeviceUse::kSideStreaming || side.task.launches < 2) {
    return 0;
  }
  const GpuTask& compute = streams_[kCompute].task;
  const std::int64_t beside = compute.KernelTime();
  if (compute.use != DeviceUse::kStreaming) {
    const auto [room, longer] = RoomForManyKernels(side);
    const std::int64_t rate = (room + longer) * Contention::kAlone / (beside + longer);
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(rate, 1, Contention::kAlone));
  }
  const std::int64_t later = kernels->later.ns();
  if (beside <= later) {
    return Contention::kAlone;
  }
  const std::int64_t kernel = side.task.KernelTime();
  return static_cast<std::int32_t>(kernel * Contention::kAlone / (kernel + later));
}

/// Speed beside compute of a side stream's copy, of one kernel or many, by what is known of both; 0
/// where that is nothing, and of an own shard: its class's.
std::int32_t GpuSharing::RateOfCopy(const Stream& side) const {
  const std::int32_t many = RateOfManyKernels(side);
  const bool one = UseOf(side) == DeviceUse::kSideStreaming && !side.own_shard;
  return many == 0 && one ? RateInLastWave(side) : many;
}

/// Speed of compute's product or attention beside a side stream's task of many kernels.
std::int32_t GpuSharing::RateBesideManyKernels(const Stream& side) const {
  const GpuTask& compute = streams_[kCompute].task;
  const std::int64_t beside = compute.KernelTime();
  const std::int64_t longer = RoomForManyKernels(side).second;
  const auto rate = static_cast<std::int32_t>(beside * Contention::kAlone / (beside + longer));
  const bool product = compute.use == DeviceUse::kMatmul;
  return product ? std::min(rate, options_.contention.Rate(compute.use, DeviceUse::kSideStreaming))
                 : rate;
}

/// Speed beside work that takes so much of its own, per mille, beside which all of it would leave
/// `rate`.
std::int32_t GpuSharing::BesideDemand(std::int32_t rate, std::int32_t demand) {
  return Contention::kAlone - (Contention::kAlone - rate) * demand / Contention::kAlone;
}

/// Speed of a task beside a side stream's copy, which takes of others' speed what it needs of the
/// memory's bandwidth: one of a few bytes, which is mostly launched, next to nothing; of a
/// collective's as a kernel of compute that moves as much.
std::int32_t GpuSharing::RateBesideCopy(const Stream& beside, const Stream& copy) const {
  const GpuTask& own = beside.task;
  const DeviceUse use = UseOf(beside);
  std::int32_t demand = copy.task.demand;
  if (&beside == &streams_[kCompute]) {
    const std::int32_t many = RateOfManyKernels(copy);
    if (many == Contention::kAlone) {
      return Contention::kAlone;
    }
    if (many != 0 && use != DeviceUse::kStreaming) {
      return RateBesideManyKernels(copy);
    }
    demand = many != 0 ? demand * many / Contention::kAlone : demand;
  }
  const bool waits = WaitsForMemory(beside);
  if ((waits || use == DeviceUse::kCollective) && Disturbs(kCompute)) {
    // A copy that waits for compute's multiprocessors moves less.
    demand = demand * RateBeside(copy, streams_[kCompute]) / Contention::kAlone;
  }
  if (waits) {
    return BesideMemoryTraffic(own.beside_memory, demand);
  }
  return BesideDemand(options_.contention.Rate(use, DeviceUse::kSideStreaming), demand);
}

/// Speed of one task beside another. A collective takes what its thread blocks are of the most that
/// NCCL launches; it and copies from and to the host leave each other alone.
std::int32_t GpuSharing::RateBeside(const Stream& beside, const Stream& disturbing) const {
  const GpuTask& own = beside.task;
  const GpuTask& other = disturbing.task;
  if (own.beside_host_copy != 0 && other.beside_host_copy != 0) {
    return own.beside_host_copy;
  }
  const bool beside_compute = &disturbing == &streams_[kCompute];
  if (own.to_host && beside_compute) {
    return options_.contention.to_host;
  }
  const std::int32_t copy = beside_compute ? RateOfCopy(beside) : 0;
  if (copy != 0) {
    return copy;
  }
  const DeviceUse use = UseOf(disturbing);
  const bool collective = use == DeviceUse::kCollective;
  const bool own_collective = UseOf(beside) == DeviceUse::kCollective;
  const bool of_host = own.beside_host_copy != 0 || other.beside_host_copy != 0;
  if (of_host && (collective || own_collective)) {
    return Contention::kAlone;  // not over the GPUs' links
  }
  if (use == DeviceUse::kSideStreaming) {
    return RateBesideCopy(beside, disturbing);
  }
  if (collective) {
    return BesideDemand(own.RateBesideCollective(options_.contention), other.demand);
  }
  if (use == DeviceUse::kStreaming && WaitsForMemory(beside)) {
    return BesideMemoryTraffic(own.beside_memory, other.memory_load);
  }
  return options_.contention.Rate(UseOf(beside), use);
}

/// Whether it is a gather by copy engines that copies from other ranks now.
bool GpuSharing::ReadsPeers(const Stream& state) {
  return UseOf(state) == DeviceUse::kCopyEngine && state.task.beside_host_copy == 0;
}

/// How far apart ranks are that no collective has brought together since.
std::int64_t GpuSharing::ApartAt(std::int64_t now) const {
  return RanksDrift() ? options_.contention.IdleWait(Duration::FromNs(now - together_)).ns() : 0;
}

/// How likely one other rank reads its peers' memory now, per mille: it does much the same, but
/// earlier or later, so as long as this one did in the time by which they are apart.
std::int32_t GpuSharing::OneReads(std::int64_t now) const {
  if (reads_.empty()) {
    return 0;
  }
  const std::int64_t apart = ApartAt(now);
  if (apart == 0) {
    return reads_.reading() ? Contention::kAlone : 0;
  }
  return static_cast<std::int32_t>(reads_.Within(now - apart, now) * Contention::kAlone / apart);
}

/// How likely any rank does, this one too.
std::int32_t GpuSharing::AnyReads(std::int64_t now) const {
  if (reads_.reading()) {
    return Contention::kAlone;
  }
  const std::int32_t one = OneReads(now);
  std::int64_t none = Contention::kAlone;
  for (int other = 1; one > 0 && other < options_.ranks; ++other) {
    none = none * (Contention::kAlone - one) / Contention::kAlone;
  }
  return static_cast<std::int32_t>(Contention::kAlone - none);
}

bool GpuSharing::CollectiveWorks() const {
  return std::any_of(streams_.begin(), streams_.end(), [](const Stream& state) {
    return state.running && state.phase == Phase::kWorking &&
           state.task.use == DeviceUse::kCollective;
  });
}

/// A collective gets on as its slowest rank does, so it counts whether any rank reads its peers'
/// memory; what holds kernels up beside it are the others that do.
std::int32_t GpuSharing::RateOf(std::size_t stream, std::int64_t now) const {
  const Contention& contention = options_.contention;
  const GpuTask& task = streams_[stream].task;
  std::int32_t rate = Contention::kAlone;
  if (task.use == DeviceUse::kCollective) {
    const std::int32_t beside = contention.Rate(DeviceUse::kCollective, DeviceUse::kCopyEngine);
    rate = BesideDemand(beside, AnyReads(now));
  }
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    if (s != stream && Disturbs(s)) {
      rate = std::min(rate, RateBeside(streams_[stream], streams_[s]));
    }
  }
  if (contention.crowded_kernel.ns() > 0 && stream == kCompute &&
      task.use == DeviceUse::kStreaming && CollectiveWorks()) {
    const std::int64_t others = std::int64_t{options_.ranks - 1} * OneReads(now);
    const std::int64_t longer = contention.crowded_kernel.ns() * others / Contention::kAlone;
    return longer > 0 ? task.RateOfLongerKernels(rate, longer) : rate;
  }
  return rate;
}

/// When what works at the speed of now ends, or may go on at another speed: a collective by the
/// chance that other ranks read their peers' memory.
std::int64_t GpuSharing::NextEvent(const Stream& state, std::int64_t now) const {
  if (state.displaced_by != 0) {
    return state.places_free;
  }
  const std::int64_t end = std::max(WorkEnd(state), state.own_end);
  if (state.task.use != DeviceUse::kCollective || reads_.reading() || OneReads(now) == 0) {
    return end;
  }
  constexpr std::int64_t kLooks = 8;  // while reads pass by
  return std::min(end, now + std::max<std::int64_t>(1, ApartAt(now) / kLooks));
}

void GpuSharing::UpdateRates(std::int64_t now) {
  disturbed_ = false;
  if (streams_[kCompute].displaced_by != 0) {
    DropDisplacers(now);
  }
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    Stream& state = streams_[s];
    if (!state.running || state.phase != Phase::kWorking) {
      continue;
    }
    const std::int32_t rate = RateOf(s, now);
    if (rate == state.work_rate && OneReads(now) == 0) {
      continue;
    }
    state.work_left = WorkLeft(state, now);
    state.work_updated = now;
    state.work_rate = rate;
    state.event = NextEvent(state, now);
  }
}

}  // namespace dcsim
