#include "sim/analysis/predict.h"

#include <algorithm>
#include <array>

#include "model/base/error.h"
#include "model/base/scaled.h"
#include "model/base/text.h"
#include "model/cost/kernel_traits.h"
#include "model/ir/plan_reader.h"
#include "model/ir/task_label.h"
#include "model/passes/lower.h"
#include "sim/analysis/most_reserved.h"
#include "sim/analysis/peak_holders.h"
#include "sim/analysis/settled_memory.h"
#include "sim/analysis/step_clock.h"
#include "sim/analysis/step_metrics.h"
#include "sim/analysis/step_phases.h"
#include "sim/analysis/timeline_recorder.h"
#include "sim/analysis/typical_step.h"
#include "sim/analysis/uncertainty.h"

namespace dcsim {
namespace {

/// Buffers that are allocated before the first step.
std::vector<BufferId> BeforeFirstStep(const Schedule& schedule) {
  std::vector<BufferId> buffers;
  for (const BufferId id : schedule.residents()) {
    if (schedule.buffer(id).first_user.is_none()) {
      buffers.push_back(id);
    }
  }
  return buffers;
}

StopReport DescribeStop(const Simulation& simulation,
                        const Schedule& schedule,
                        const Graph& graph) {
  const Stop& stop = *simulation.stop;
  StopReport report{"allocation of weights and optimizer states", stop.requested, stop.step};
  if (!stop.buffer.is_none()) {
    report.requested_class = BufferClassName(schedule.buffer(stop.buffer).buffer_class);
  }
  if (simulation.outcome == Outcome::kOutOfPinnedMemory) {
    report.task = "what one GPU offloads";
  } else if (stop.task.is_none()) {
    report.needed = BytesByClass(BeforeFirstStep(schedule), schedule);
  } else {
    const Task& task = schedule.task(stop.task);
    report.task = TaskLabel(schedule, graph, stop.task);
    report.op = task.kind == TaskKind::kCompute
                    ? graph.target(OpId(schedule.work(task.work).subject))
                    : std::string_view();
  }
  return report;
}

/// What a stopped run says on its timeline.
std::string StopText(Outcome outcome, const StopReport& stop) {
  switch (outcome) {
    case Outcome::kOutOfMemory:
      return "out of memory: " + stop.task + " asks for " + FormatBytes(stop.requested);
    case Outcome::kOutOfPinnedMemory:
      return "out of pinned memory: " + stop.task + " takes " + FormatBytes(stop.requested);
    default:
      return "deadlock: " + stop.task + " can never start";
  }
}

/// The step in which the simulation stopped: simulated again, since nobody knew which it would be.
Timeline RecordStopped(const Schedule& schedule,
                       std::span<const WorkCost> costs,
                       const SimulationOptions& options,
                       const Simulation& stopped,
                       const Result& result) {
  TimelineRecorder recorder(stopped.stop->step);
  const std::array<Observer*, 1> observers = {&recorder};
  Simulate(schedule, costs, options, observers);
  return recorder.TimelineUntil(stopped, StopText(stopped.outcome, *result.stop));
}

/// Throughput figures that follow from the step time.
void AddRates(Result& result, const Plan& plan, const PredictionInputs& inputs) {
  const double seconds = result.step_time.seconds();
  if (seconds <= 0) {
    return;
  }
  const double micro_steps = plan.options.gradient_accumulation_steps;
  const double tokens = static_cast<double>(inputs.graph.tokens) * micro_steps * plan.ranks;
  result.tokens_per_second = tokens / seconds;
  double utilisation = 0;
  for (const auto& [dtype, flops] : ModelFlopsByDType(inputs.graph)) {
    const double peak = inputs.cluster.gpu.MatmulFlops(dtype);
    if (peak <= 0) {
      return;
    }
    utilisation += static_cast<double>(flops) * micro_steps / seconds / peak;
  }
  result.model_flops_utilisation = utilisation;
}

/// What was predicted.
void AddInputs(Result& result, const Plan& plan, const PredictionInputs& inputs) {
  result.workload = inputs.graph.name;
  result.graph_hash = inputs.graph.hash;
  result.cluster = inputs.cluster.document;
  result.plan = PrintPlan(plan, inputs.graph);
  result.gpus = plan.ranks;
}

/// Where the step's time goes.
void AddTimes(Result& result, const StepMetrics& metrics) {
  result.compute = metrics.compute();
  result.exposed_communication = metrics.exposed_communication();
  result.compute_gaps = metrics.compute_gaps();
  result.exposed_gaps = metrics.exposed_gaps();
  result.exposed_starts = metrics.exposed_starts();
  result.collectives = metrics.collectives();
  result.sources = metrics.sources();
}

void AddMemory(Result& result, const Simulation& simulation) {
  result.peak_live = simulation.peak_live;
  result.peak_allocated = simulation.memory.allocated.peak;
  result.peak_active = simulation.memory.active.peak;
  result.peak_reserved = simulation.memory.reserved.peak;
  result.allocated_after_step = simulation.allocated_after_step;
  result.allocator_retries = simulation.memory.retries;
}

/// Of a simulation that stopped: what there was then.
void AddMemoryAtStop(Result& result, const Simulation& simulation, const Schedule& schedule) {
  result.peak_live = simulation.live_after_step;
  result.peak_allocated = simulation.memory.allocated.current;
  result.peak_active = simulation.memory.active.current;
  result.peak_reserved = simulation.memory.reserved.current;
  result.peak_reserved_most = result.peak_reserved;
  result.allocator_retries = simulation.memory.retries;
  result.peak_classes = BytesByClass(simulation.stop->alive, schedule);
}

void AddPhases(Result& result, const StepPhases& phases) {
  result.forward = phases.time(StepPhase::kForward);
  result.backward = phases.time(StepPhase::kBackward);
  result.optimizer = phases.time(StepPhase::kOptimizer);
}

/// The answer in a word. Segments in another order may need more than the simulated step did.
std::string VerdictOf(const Result& result, Outcome outcome) {
  switch (outcome) {
    case Outcome::kCompleted:
      return result.peak_reserved_most > result.capacity ? "may_run_out_of_memory" : "fits";
    case Outcome::kDeadlock:
      return "deadlock";
    case Outcome::kOutOfMemory:
    case Outcome::kOutOfPinnedMemory:
      return "does_not_fit";
  }
  return "";
}

/// What a GPU leaves to the allocator of tensors.
Bytes CapacityOf(const GpuSpec& gpu, Bytes outside_allocator) {
  const Bytes taken = outside_allocator + kDriverReserve;
  if (gpu.memory <= taken || gpu.memory - taken > kMaxCapacity) {
    throw Error("gpu " + gpu.name + ": memory: expected more than " + PrintBytes(taken) +
                ", which outside_allocator and the driver take, and at most " +
                PrintBytes(kMaxCapacity) + " more, found " + PrintBytes(gpu.memory));
  }
  return gpu.memory - taken;
}

/// By how much ranks may drift apart at most, of the time that passes: where the slowest has this
/// clock, no other has more than the highest.
Share MostDrift(const GpuSpec& gpu, double clock_mhz) {
  if (!gpu.power || clock_mhz <= 0) {
    return Share::All();
  }
  return Share::Below(gpu.power->highest_mhz / clock_mhz - 1);
}

/// Of a job that begins so, from its first step on, where memory follows time.
SimulationOptions JobOptions(const Schedule& schedule,
                             const PredictionInputs& inputs,
                             const FirstSteps& steps) {
  const SimulationOptions options = OptionsFor(schedule, inputs);
  return MemoryFollowsTime(schedule)
             ? FromTheFirst(steps, schedule, inputs.graph, inputs.cluster.host, options)
             : options;
}

/// Adds what the steps of a job need beyond the one that was simulated with `simulated`. Returns
/// the options of a simulation that needs as much.
SimulationOptions AddLaterSteps(AllocatorStats& memory,
                                const Schedule& schedule,
                                std::span<const WorkCost> costs,
                                const PredictionInputs& inputs,
                                const SimulationOptions& simulated) {
  SimulationOptions job = JobOptions(schedule, inputs, inputs.first_steps);
  if (MemoryFollowsTime(schedule)) {
    const Simulation simulation = Simulate(schedule, costs, job, {});
    if (simulation.outcome != Outcome::kCompleted) {
      return simulated;
    }
    memory.reserved = simulation.memory.reserved;
    memory.active = simulation.memory.active;
    return job;
  }
  std::uint32_t steps = 0;
  const AllocatorStats settled = SettledMemory(schedule, job.allocator, inputs.first_steps, &steps);
  if (settled.reserved.peak > job.allocator.capacity) {
    return simulated;
  }
  memory.allocated = settled.allocated;
  memory.active = settled.active;
  memory.reserved = settled.reserved;
  job.warmup_steps = std::min(inputs.first_steps.warmup, steps - 1);
  job.measured_steps = steps - job.warmup_steps;
  return job;
}

}  // namespace

Schedule LowerFor(const Plan& plan, const PredictionInputs& inputs) {
  const GpuSpec& gpu = inputs.cluster.gpu;
  const Workspaces workspaces{gpu.workspaces, gpu.bias_workspaces};
  return Lower(plan, inputs.graph, inputs.profile, workspaces);
}

Bytes OutsideAllocator(const ScheduleOptions& options, const Cluster& cluster, int ranks) {
  Bytes bytes = cluster.gpu.outside_allocator;
  if (ranks > 1) {
    const CommunicatorMemory& nccl = cluster.communicator_memory;
    const bool of_gradients =
        options.stage != 3 && options.reduce_collective == ReduceCollective::kAllReduce;
    const bool all_reduces = of_gradients || options.gradient_clipping.has_value();
    bytes += nccl.first;
    bytes += all_reduces ? nccl.all_reduce : Bytes();
    bytes += options.communicators > 1 ? nccl.second : Bytes();
  }
  return bytes;
}

SimulationOptions OptionsFor(const ScheduleOptions& chosen,
                             const Cluster& cluster,
                             int ranks,
                             double clock_mhz) {
  SimulationOptions options;
  options.allocator.expandable_segments = chosen.allocator == AllocatorMode::kExpandableSegments;
  options.allocator.capacity = CapacityOf(cluster.gpu, OutsideAllocator(chosen, cluster, ranks));
  options.allocator.device_memory = cluster.gpu.memory;
  options.synchronize = cluster.host.synchronize;
  options.segment = cluster.host.segment;
  options.record = Scaled(cluster.host.record, cluster.host_slowdown);
  options.take_back = Scaled(cluster.host.take_back, cluster.host_slowdown);
  options.give_back_rate = cluster.gpu.give_back_rate;
  options.launch_queue = cluster.host.launch_queue;
  options.collective_gap = cluster.gpu.gaps.collective;
  options.start_gap = cluster.gpu.kernel_start();
  options.queued_gap =
      cluster.gpu.gaps.queued.value_or(cluster.gpu.gaps.kernel.value_or(Duration()));
  options.waiting_delays = cluster.gpu.gaps.waiting;
  options.contention = cluster.gpu.contention;
  if (chosen.gather_engine == Engine::kNccl) {
    Share& drift = options.contention.drift;
    drift = std::min(drift, MostDrift(cluster.gpu, clock_mhz));
  }
  if (cluster.pinned_memory) {
    options.pinned_memory = Bytes(cluster.pinned_memory->count() / cluster.gpus_per_node);
  }
  return options;
}

SimulationOptions OptionsFor(const Schedule& schedule, const Cluster& cluster, double clock_mhz) {
  return OptionsFor(schedule.options(), cluster, schedule.ranks(), clock_mhz);
}

SimulationOptions OptionsFor(const Schedule& schedule, const PredictionInputs& inputs) {
  SimulationOptions options = OptionsFor(schedule, inputs.cluster, inputs.clock_mhz);
  options.host_pace = inputs.host_pace;
  options.allocator.recorded_segments = inputs.recorded_segments;
  return options;
}

Bytes MostReservedBy(const Schedule& schedule,
                     std::span<const WorkCost> costs,
                     const PredictionInputs& inputs) {
  FirstSteps few = inputs.first_steps;
  few.warmup = FirstSteps().warmup;
  few.measured = FirstSteps().measured;
  return MostReserved(schedule, costs, JobOptions(schedule, inputs, few));
}

namespace {

/// Of the steps that are predicted: a job whose memory may run out goes through its first steps.
SimulationOptions StepOptions(const Schedule& schedule,
                              std::span<const WorkCost> costs,
                              const PredictionInputs& inputs,
                              Bytes most) {
  SimulationOptions options = OptionsFor(schedule, inputs);
  if (most <= options.allocator.capacity) {
    return options;
  }
  FirstSteps up_to_one = inputs.first_steps;
  up_to_one.measured = 1;
  return AtTypicalStep(schedule, costs, JobOptions(schedule, inputs, up_to_one));
}

}  // namespace

Prediction Predict(const Schedule& schedule,
                   const Plan& plan,
                   const PredictionInputs& at_any_clock,
                   bool keep_timeline,
                   Observer* of_peaks) {
  const ClockedCosts clocked = CostsAtClock(schedule, at_any_clock);
  const std::vector<WorkCost>& costs = clocked.costs;
  PredictionInputs inputs = at_any_clock;
  inputs.clock_mhz = clocked.clock_mhz;
  const Bytes most = MostReservedBy(schedule, costs, inputs);
  const SimulationOptions options = StepOptions(schedule, costs, inputs, most);
  StepMetrics metrics(schedule, costs, options.warmup_steps, options.start_gap);
  PeakClasses classes(schedule, options.warmup_steps);
  StepPhases phases(schedule, inputs.graph, options.warmup_steps);
  TimelineRecorder recorder(options.warmup_steps);
  std::vector<Observer*> observers = {&metrics, &classes, &phases};
  if (keep_timeline) {
    observers.push_back(&recorder);
  }
  Simulation simulation = Simulate(schedule, costs, options, observers);
  SimulationOptions job = options;
  if (simulation.outcome == Outcome::kCompleted) {
    job = AddLaterSteps(simulation.memory, schedule, costs, inputs, options);
  }
  if (of_peaks != nullptr) {
    const std::array<Observer*, 1> listening = {of_peaks};
    Simulate(schedule, costs, job, listening);
  }

  Prediction prediction;
  Result& result = prediction.result;
  result.outcome = OutcomeName(simulation.outcome);
  result.peak_reserved_most = simulation.memory.reserved.peak;
  if (simulation.outcome == Outcome::kCompleted) {
    result.step_time = simulation.measured_step_times(options.warmup_steps).front();
    result.peak_reserved_most = std::max(result.peak_reserved_most, most);
    StepTimeBound bound = FindStepTimeBound(result.step_time, schedule, clocked, inputs.cluster);
    result.bound = bound.half_width;
    result.no_bound = std::move(bound.unknown);
    AddPhases(result, phases);
  }
  result.sm_clock_mhz = clocked.clock_mhz;
  AddTimes(result, metrics);
  result.capacity = options.allocator.capacity;
  result.verdict = VerdictOf(result, simulation.outcome);
  result.outside_allocator = OutsideAllocator(schedule.options(), inputs.cluster, plan.ranks);
  result.host_pinned = schedule.host_pinned();
  AddInputs(result, plan, inputs);
  AddRates(result, plan, inputs);
  if (simulation.stop) {
    result.stop = DescribeStop(simulation, schedule, inputs.graph);
    AddMemoryAtStop(result, simulation, schedule);
    prediction.stop = simulation.stop;
  } else {
    AddMemory(result, simulation);
    result.peak_classes = classes.classes();
  }
  if (keep_timeline) {
    prediction.timeline = simulation.stop
                              ? RecordStopped(schedule, costs, options, simulation, result)
                              : recorder.timeline();
  }
  return prediction;
}

}  // namespace dcsim
