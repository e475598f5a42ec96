#include "model/cost/work_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "model/base/error.h"
#include "model/base/scaled.h"
#include "model/cost/collective_work_cost.h"
#include "model/cost/concatenation.h"
#include "model/cost/kernel_models.h"
#include "model/cost/kernel_traits.h"
#include "model/cost/memory_load.h"
#include "model/cost/multiprocessor_share.h"
#include "model/cost/param_alignment.h"
#include "model/cost/power.h"
#include "model/cost/profiled_launch.h"
#include "model/graph/laid_out_profile.h"
#include "model/graph/param_shifts.h"
#include "model/graph/sharding.h"
#include "model/graph/step_facts.h"
#include "model/ir/micro_steps.h"
#include "model/ir/task_label.h"

namespace dcsim {
namespace {

/// What the cost of each work is derived from.
struct CostInputs {
  const Schedule& schedule;
  const Graph& graph;
  const Profile* profile;
  const Cluster& cluster;
  StepFacts facts;
  LaidOutProfile ops;
  ParamAlignment alignment;
  std::vector<bool> shifted_shards;  // by parameter
  double untraced = 1;               // of a profiled op's time
  double host = 1;                   // of what a profiled op took of the host
};

/// Ops are profiled with kernel records, which make kernels of a million thread blocks and more up
/// to 5 % longer. Their sum is more than the step without records then.
double UntracedShare(const Profile* profile) {
  if (profile == nullptr) {
    return 1;
  }
  Duration sum;
  for (const OpProfile& op : profile->ops) {
    sum += op.device_time;
  }
  const Duration step = profile->step_time;
  return step < sum && step > Duration() ? step.seconds() / sum.seconds() : 1;
}

/// How many times as long as in the profile the cluster's host takes.
double HostShare(const Graph& graph, const Profile* profile, const Cluster& cluster) {
  const Duration launch = profile == nullptr ? Duration() : ProfiledLaunch(graph, *profile);
  return launch > Duration() ? cluster.host.launch.seconds() / launch.seconds() : 1;
}

Duration TimeToMove(Bytes bytes, double bytes_per_second) {
  return RoundedUpNs(static_cast<double>(bytes.count()) / bytes_per_second * 1e9);
}

/// The measured rate of memory work, if any.
std::optional<BytesPerSecond> FindRate(const Cluster& cluster, MemoryPattern pattern) {
  for (const PatternRate& entry : cluster.memory_patterns) {
    if (entry.pattern == pattern) {
      return entry.rate;
    }
  }
  return std::nullopt;
}

WorkCost OpCost(const CostInputs& inputs, OpId id) {
  const auto [measured, shifted] = inputs.ops.Find(id);
  WorkCost cost;
  cost.host =
      measured == nullptr ? inputs.cluster.host.view : Scaled(measured->host_time, inputs.host);
  if (inputs.facts.is_view[id.index()]) {
    cost.source = Source::kMeasured;
    return cost;
  }
  const KernelTraits traits = TraitsOf(inputs.graph, id);
  cost.use = UseOf(traits);
  const DeviceGaps& gaps = inputs.cluster.gpu.gaps;
  const Duration own_gap = measured == nullptr ? Duration() : inputs.profile->kernel_gap;
  const Duration gap = gaps.step.value_or(gaps.kernel.value_or(own_gap));
  if (measured != nullptr) {
    cost.gaps = gap * static_cast<std::int64_t>(measured->kernels.size());
    cost.device = Scaled(measured->device_time, inputs.untraced);
    cost.source = Source::kMeasured;
  } else {
    cost.gaps = Scaled(gap, traits.launches.kernels);
    cost.device = KernelTime(traits, inputs.cluster.gpu);
    cost.host = Scaled(inputs.cluster.host.launch, traits.launches.host);
    cost.source = Source::kEstimated;
    cost.guessed = !traits.shown;
  }
  if (!shifted) {
    const Duration delay = inputs.alignment.Delay(traits, cost.device, inputs.cluster.gpu);
    cost.source = delay > Duration() ? Source::kEstimated : cost.source;
    cost.device += delay;
  }
  cost.device += cost.gaps;
  const LaunchedKernels launched =
      measured == nullptr ? LaunchedKernels() : FindKernels(*inputs.profile, *measured);
  const MultiprocessorShare share =
      ShareOf(traits, cost.use, cost.device, launched, inputs.cluster.gpu);
  cost.launches = static_cast<std::int32_t>(launched.count);
  cost.room = share.room;
  cost.last_wave = share.last_wave;
  cost.last_free = share.last_free;
  cost.own_tiles = share.own_tiles;
  cost.own_latest = share.own_latest;
  cost.beside_collective = share.beside_collective;
  if (cost.use == DeviceUse::kStreaming) {
    cost.memory_load = MemoryLoad({traits.read(), traits.written}, cost.device, inputs.cluster.gpu);
  }
  return cost;
}

/// Rate of memory work: measured for its pattern, or the roofline's.
std::pair<double, Source> PatternRateOf(const Cluster& cluster, MemoryPattern pattern) {
  if (const auto measured = FindRate(cluster, pattern)) {
    return {static_cast<double>(measured->count()), Source::kMeasured};
  }
  if (pattern == MemoryPattern::kAdamWUneven) {
    return PatternRateOf(cluster, MemoryPattern::kAdamW);
  }
  if (pattern == MemoryPattern::kFusedUpdate || pattern == MemoryPattern::kFusedUpdateUneven) {
    const bool even = pattern == MemoryPattern::kFusedUpdate;
    const auto like = even ? MemoryPattern::kAdamW : MemoryPattern::kAdamWUneven;
    return {PatternRateOf(cluster, like).first, Source::kEstimated};
  }
  const GpuSpec& gpu = cluster.gpu;
  return {static_cast<double>(gpu.memory_bandwidth.count()) * gpu.bandwidth_efficiency,
          Source::kEstimated};
}

/// A copy between GPU and pinned host memory: measured, or the GPU file's figure. Without any,
/// inputs are there already.
WorkCost HostCopyCost(const CostInputs& inputs, const Work& work) {
  const Cluster& cluster = inputs.cluster;
  const auto [rate, source] = HostRateOf(cluster, work.pattern);
  if (rate.count() == 0 && work.pattern == MemoryPattern::kInputs) {
    return {.source = source};
  }
  if (rate.count() == 0) {
    throw Error("gpu " + cluster.gpu.name +
                ": host_bandwidth is missing, which a plan that offloads needs");
  }
  const bool out = work.pattern == MemoryPattern::kOffload;
  const double left = out ? cluster.host_both_ways.offload : cluster.host_both_ways.reload;
  return {.device = TimeToMove(work.moved, static_cast<double>(rate.count())),
          .host = cluster.host.copy * work.launches,
          .further = cluster.host.copy * std::max<std::int64_t>(0, work.launches - 1),
          .source = source,
          .use = DeviceUse::kCopyEngine,
          .beside_host_copy = Rate::Nearest(left),
          .to_host = out,
          .launches = static_cast<std::int32_t>(work.launches)};
}

/// Parts of a bucket that at::cat brings together. Besides its kernels the host makes a view of
/// each part, and padding is a kernel of its own, as is a part alone.
WorkCost FlattenCost(const CostInputs& inputs, const Work& work) {
  const Cluster& cluster = inputs.cluster;
  const Collective& collective = inputs.schedule.collective(CollectiveId(work.subject));
  const ScheduleOptions& options = inputs.schedule.options();
  const auto rate = PatternRateOf(cluster, MemoryPattern::kCopy).first;
  const auto cats = FlattenedParts(collective, inputs.graph, CutByParameter(options),
                                   options.contiguous_gradients);
  const std::int64_t elements = std::max<std::int64_t>(
      1, collective.payload().count() / ElementBytes(collective.dtype));   // of the flat tensor
  const std::int64_t element_bytes = work.moved.count() / (2 * elements);  // read and written
  WorkCost cost{.source = Source::kEstimated};
  std::int64_t parts = 0;
  for (const auto& cat : cats) {
    cost.device += ConcatenationTime(cat, element_bytes,
                                     BytesPerSecond(static_cast<std::int64_t>(rate)), cluster.gpu);
    parts += static_cast<std::int64_t>(cat.size());
  }
  const auto paddings = static_cast<std::int64_t>(cats.size()) - 1;
  const auto launches = work.launches + 2 * paddings;
  const Duration streaming = TimeToMove(work.moved, rate);
  cost.device += cluster.gpu.memory_pace() * (2 * paddings);
  cost.host = cluster.host.launch * launches + cluster.host.view * parts;
  cost.demand = DemandOf(streaming, cost.device);
  cost.launches = static_cast<std::int32_t>(launches);
  cost.start = cluster.gpu.kernel_start();
  return cost;
}

WorkCost MemoryCost(const CostInputs& inputs, const Work& work) {
  if (work.pattern == MemoryPattern::kOffload || work.pattern == MemoryPattern::kReload ||
      work.pattern == MemoryPattern::kInputs) {
    return HostCopyCost(inputs, work);
  }
  if (work.concatenates && inputs.cluster.gpu.kernels) {
    return FlattenCost(inputs, work);
  }
  const auto [rate, source] = PatternRateOf(inputs.cluster, work.pattern);
  if (work.launches == 0) {
    return {.source = source};
  }
  const Duration streaming = TimeToMove(work.moved, rate);
  const GpuSpec& gpu = inputs.cluster.gpu;
  const Duration pace = gpu.memory_pace();
  const std::int64_t further = work.launches - 1;
  const Duration device = std::max(streaming, gpu.shortest_kernel) + pace * further;
  return {.device = device,
          .host = inputs.cluster.host.launch * work.launches,
          .further = inputs.cluster.host.launch * further,
          .source = source,
          .demand = DemandOf(streaming, device),
          .memory_load = MemoryLoad(MovedByPattern(work.pattern, work.moved), device, gpu),
          .launches = static_cast<std::int32_t>(work.launches),
          .start = gpu.kernel_start(),
          .gaps = std::max(pace - gpu.shortest_kernel, Duration()) * further};
}

WorkCost CostOf(const CostInputs& inputs, const Work& work) {
  switch (work.kind) {
    case Work::Kind::kOp:
      return OpCost(inputs, OpId(work.subject));
    case Work::Kind::kCollective:
      return CollectiveWorkCost(inputs.cluster, inputs.shifted_shards,
                                inputs.schedule.collective(CollectiveId(work.subject)));
    case Work::Kind::kMemory:
      return MemoryCost(inputs, work);
    case Work::Kind::kNone:
      return {.source = Source::kMeasured};
  }
  return {};
}

/// The cost where kernels take `factor` times as long as they were measured. Collectives wait for
/// the slowest rank, and go on as fast as ever.
void SlowDown(const Work& work, double factor, WorkCost& cost) {
  const bool kernels = work.kind == Work::Kind::kOp || work.kind == Work::Kind::kMemory;
  if (!kernels || factor == 1) {
    return;
  }
  cost.device = Scaled(cost.device, factor);
  cost.room = Scaled(cost.room, factor);
}

/// Nobody waits for a step that takes a day by the sum of its parts; times of such steps might not
/// fit 63 bits.
void CheckLength(const Schedule& schedule, const Graph& graph, std::span<const WorkCost> costs) {
  constexpr Duration kMost = Duration::FromMs(std::int64_t{24} * 3'600'000);
  const std::vector<std::int64_t> times = TimesInStep(schedule);
  Duration all;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Duration each = std::min(kLongest, costs[i].device) + std::min(kLongest, costs[i].host);
    if (times[i] > 0 && each.ns() > (kMost - all).ns() / times[i]) {
      const auto first = std::ranges::find(schedule.tasks(), WorkId(i), &Task::work);
      const TaskId task(static_cast<std::size_t>(first - schedule.tasks().begin()));
      throw Error(
          "a step takes more than a day by what the cluster file says, with tasks such as " +
          TaskLabel(schedule, graph, task));
    }
    all += each * times[i];
  }
}

/// By use, what a work takes at a clock over what it took when it was measured.
std::array<double, kDeviceUses> ClockFactors(const CostInputs& inputs, double clock_mhz) {
  std::array<double, kDeviceUses> factors;
  factors.fill(1);
  const auto& power = inputs.cluster.gpu.power;
  if (power && clock_mhz > 0) {
    const double lower = ProfiledClock(inputs.profile, *power) / clock_mhz;
    std::transform(power->slows.begin(), power->slows.end(), factors.begin(),
                   [lower](double slows) { return std::pow(lower, slows); });
  }
  return factors;
}

/// Adds what the host does in Python. A task's first launch comes behind its share of it.
void AddPython(const Work& work, const HostCosts& host, WorkCost& cost) {
  const Duration calls = host.python_operator * work.python.operators +
                         host.autograd_node * work.python.autograd_nodes +
                         host.compiled_graph * work.python.graphs +
                         host.module_hooks * work.python.modules;
  cost.host += calls;
  if (work.launches > 1) {
    cost.further += calls - Scaled(calls, 1.0 / work.launches);
  }
}

}  // namespace

DeviceUse UseOf(const KernelTraits& of) {
  switch (of.op_class()) {
    case OpClass::kMatmul:
      return DeviceUse::kMatmul;
    case OpClass::kAttention:
    case OpClass::kAttentionBackward:
      return DeviceUse::kAttention;
    case OpClass::kStreaming:
      return DeviceUse::kStreaming;
  }
  return DeviceUse::kStreaming;
}

std::pair<BytesPerSecond, Source> HostRateOf(const Cluster& cluster, MemoryPattern pattern) {
  if (const auto measured = FindRate(cluster, pattern)) {
    return {*measured, Source::kMeasured};
  }
  if (pattern == MemoryPattern::kInputs) {
    return HostRateOf(cluster, MemoryPattern::kReload);
  }
  return {cluster.gpu.host_bandwidth, Source::kEstimated};
}

std::vector<WorkCost> EstimateWorks(const Schedule& schedule,
                                    const Graph& graph,
                                    const Profile* profile,
                                    const Cluster& cluster,
                                    double clock_mhz) {
  CostInputs inputs{schedule,
                    graph,
                    profile,
                    cluster,
                    AnalyseStep(graph),
                    LaidOutProfile(graph, profile, schedule.options(), schedule.ranks()),
                    ParamAlignment(graph, schedule.options(), schedule.ranks()),
                    ShiftedShards(graph, schedule.options(), schedule.ranks()),
                    UntracedShare(profile),
                    HostShare(graph, profile, cluster)};
  const auto clock_factors = ClockFactors(inputs, clock_mhz);
  std::vector<WorkCost> costs;
  costs.reserve(schedule.works().size());
  for (const Work& work : schedule.works()) {
    WorkCost cost = CostOf(inputs, work);
    cost.host += cluster.host.event * work.events;
    AddPython(work, cluster.host, cost);
    cost.host = Scaled(cost.host, cluster.host_slowdown);
    cost.further = Scaled(cost.further, cluster.host_slowdown);
    SlowDown(work, cluster.straggler * clock_factors[static_cast<std::size_t>(cost.use)], cost);
    costs.push_back(cost);
  }
  CheckLength(schedule, graph, costs);
  return costs;
}

}  // namespace dcsim
