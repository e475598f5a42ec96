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

/// Whether what it moves now waits for the memory's bandwidth by a law of its own, not its class's.
bool GpuSharing::WaitsForMemory(const Stream& state) const {
  const bool gather = ReadsPeers(state) && state.task.beside_memory > Longer();
  return gather ||
         (UseOf(state) == DeviceUse::kCollective && options_.contention.beside_memory.has_value());
}

/// Speed of a side stream's copy in the last wave of compute's product, which leaves it some
/// multiprocessors; none where that is not known.
std::optional<Rate> GpuSharing::RateInLastWave(const Stream& side) const {
  const GpuTask& compute = streams_[kCompute].task;
  const int needed = options_.contention.copy_multiprocessors;
  if (compute.use != DeviceUse::kMatmul || compute.last_free == 0 || needed == 0) {
    return std::nullopt;
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
    const std::optional<Rate> last = RateInLastWave(side);
    room += last ? last->share().PartOf(compute.last_wave) : 0;
  } else {
    room = std::max(room, compute.LastRound());
  }
  return {room, std::max<std::int64_t>(0, side.task.KernelTime() - room)};
}

/// Speed beside compute of a side stream's task of many kernels, each of which has to find
/// multiprocessors: none where nothing is known of it, or it is no such task. All of it beside
/// short kernels, between two of which one comes.
std::optional<Rate> GpuSharing::RateOfManyKernels(const Stream& side) const {
  const auto& kernels = options_.contention.side_kernels;
  if (!kernels || side.task.use != DeviceUse::kSideStreaming || side.task.launches < 2) {
    return std::nullopt;
  }
  const GpuTask& compute = streams_[kCompute].task;
  const std::int64_t beside = compute.KernelTime();
  if (compute.use != DeviceUse::kStreaming) {
    const auto [room, longer] = RoomForManyKernels(side);
    return Rate::Of(room + longer, beside + longer);
  }
  const std::int64_t later = kernels->later.ns();
  const std::int64_t kernel = side.task.KernelTime();
  return beside <= later ? Rate() : Rate::Of(kernel, kernel + later);
}

/// Speed beside compute of a side stream's copy, of one kernel or many, by what is known of both;
/// none where that is nothing, and of an own shard: its class's.
std::optional<Rate> GpuSharing::RateOfCopy(const Stream& side) const {
  const std::optional<Rate> many = RateOfManyKernels(side);
  const bool one = UseOf(side) == DeviceUse::kSideStreaming && !side.own_shard;
  return !many && one ? RateInLastWave(side) : many;
}

/// Speed of compute's product or attention beside a side stream's task of many kernels.
Rate GpuSharing::RateBesideManyKernels(const Stream& side) const {
  const GpuTask& compute = streams_[kCompute].task;
  const std::int64_t beside = compute.KernelTime();
  const std::int64_t longer = RoomForManyKernels(side).second;
  const Rate rate = Rate::Of(beside, beside + longer);
  const bool product = compute.use == DeviceUse::kMatmul;
  return product
             ? std::min(rate, options_.contention.RateOf(compute.use, DeviceUse::kSideStreaming))
             : rate;
}

/// Speed of a task beside a side stream's copy, which takes of others' speed what it needs of the
/// memory's bandwidth: one of a few bytes, which is mostly launched, next to nothing; of a
/// collective's as a kernel of compute that moves as much.
Rate GpuSharing::RateBesideCopy(const Stream& beside, const Stream& copy) const {
  const GpuTask& own = beside.task;
  const DeviceUse use = UseOf(beside);
  Share demand = copy.task.demand;
  if (&beside == &streams_[kCompute]) {
    const std::optional<Rate> many = RateOfManyKernels(copy);
    if (many && many->alone()) {
      return {};
    }
    if (many && use != DeviceUse::kStreaming) {
      return RateBesideManyKernels(copy);
    }
    demand = many ? demand.PartOf(many->share()) : demand;
  }
  const bool waits = WaitsForMemory(beside);
  if ((waits || use == DeviceUse::kCollective) && Disturbs(kCompute)) {
    // A copy that waits for compute's multiprocessors moves less.
    demand = demand.PartOf(RateBeside(copy, streams_[kCompute]).share());
  }
  if (waits) {
    return own.beside_memory.RateAt(demand);
  }
  return options_.contention.RateOf(use, DeviceUse::kSideStreaming).Beside(demand);
}

/// Speed of one task beside another. A collective takes what its thread blocks are of the most that
/// NCCL launches; it and copies from and to the host leave each other alone.
Rate GpuSharing::RateBeside(const Stream& beside, const Stream& disturbing) const {
  const GpuTask& own = beside.task;
  const GpuTask& other = disturbing.task;
  if (own.beside_host_copy && other.beside_host_copy) {
    return *own.beside_host_copy;
  }
  const bool beside_compute = &disturbing == &streams_[kCompute];
  if (own.to_host && beside_compute) {
    return options_.contention.to_host;
  }
  if (const auto copy = beside_compute ? RateOfCopy(beside) : std::nullopt) {
    return *copy;
  }
  const DeviceUse use = UseOf(disturbing);
  const bool collective = use == DeviceUse::kCollective;
  const bool own_collective = UseOf(beside) == DeviceUse::kCollective;
  const bool of_host = own.beside_host_copy || other.beside_host_copy;
  if (of_host && (collective || own_collective)) {
    return {};  // not over the GPUs' links
  }
  if (use == DeviceUse::kSideStreaming) {
    return RateBesideCopy(beside, disturbing);
  }
  if (collective) {
    return own.RateBesideCollective(options_.contention).Beside(other.demand);
  }
  if (use == DeviceUse::kStreaming && WaitsForMemory(beside)) {
    return own.beside_memory.RateAt(other.memory_load);
  }
  return options_.contention.RateOf(UseOf(beside), use);
}

/// Whether it is a gather by copy engines that copies from other ranks now.
bool GpuSharing::ReadsPeers(const Stream& state) {
  return UseOf(state) == DeviceUse::kCopyEngine && !state.task.beside_host_copy;
}

/// How far apart ranks are that no collective has brought together since.
std::int64_t GpuSharing::ApartAt(std::int64_t now) const {
  ++apart_asked_;
  return RanksDrift() ? options_.contention.IdleWait(Duration::FromNs(now - together_)).ns() : 0;
}

/// How likely one other rank reads its peers' memory now: it does much the same, but
/// earlier or later, so as long as this one did in the time by which they are apart.
Share GpuSharing::OneReads(std::int64_t now) const {
  if (reads_.empty()) {
    return {};
  }
  const std::int64_t apart = ApartAt(now);
  if (apart == 0) {
    return reads_.reading() ? Share::All() : Share();
  }
  return Share::Of(reads_.Within(now - apart, now), apart);
}

/// How likely any rank does, this one too.
Share GpuSharing::AnyReads(std::int64_t now) const {
  if (reads_.reading()) {
    return Share::All();
  }
  const Share one = OneReads(now);
  Share none = Share::All();
  for (int other = 1; one > Share() && none > Share() && other < options_.ranks; ++other) {
    none = none.PartOf(one.Rest());
  }
  return none.Rest();
}

bool GpuSharing::CollectiveWorks() const {
  return std::any_of(streams_.begin(), streams_.end(), [](const Stream& state) {
    return state.running && state.phase == Phase::kWorking &&
           state.task.use == DeviceUse::kCollective;
  });
}

/// A collective gets on as its slowest rank does, so it counts whether any rank reads its peers'
/// memory; what holds kernels up beside it are the others that do.
Rate GpuSharing::RateOf(std::size_t stream, std::int64_t now) const {
  const Contention& contention = options_.contention;
  const GpuTask& task = streams_[stream].task;
  Rate rate;
  if (task.use == DeviceUse::kCollective) {
    rate = contention.RateOf(DeviceUse::kCollective, DeviceUse::kCopyEngine).Beside(AnyReads(now));
  }
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    if (s != stream && Disturbs(s)) {
      rate = std::min(rate, RateBeside(streams_[stream], streams_[s]));
    }
  }
  if (contention.crowded_kernel.ns() > 0 && stream == kCompute &&
      task.use == DeviceUse::kStreaming && CollectiveWorks()) {
    const std::int64_t longer =
        OneReads(now).PartOf(contention.crowded_kernel.ns() * (options_.ranks - 1));
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
  if (state.task.use != DeviceUse::kCollective || reads_.reading() || OneReads(now) == Share()) {
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
    const Rate rate = RateOf(s, now);
    if (rate == state.work_rate && OneReads(now) == Share()) {
      continue;
    }
    state.work_left = WorkLeft(state, now);
    state.work_updated = now;
    state.work_rate = rate;
    state.event = NextEvent(state, now);
  }
}

}  // namespace dcsim
