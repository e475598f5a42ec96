#include "sim/analysis/step_clock.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "model/cost/power.h"
#include "model/ir/micro_steps.h"
#include "sim/analysis/step_metrics.h"
#include "sim/analysis/step_phases.h"

namespace dcsim {
namespace {

std::vector<WorkCost> CostsAt(const Schedule& schedule,
                              const PredictionInputs& inputs,
                              double clock_mhz) {
  return EstimateWorks(schedule, inputs.graph, inputs.profile, inputs.cluster, clock_mhz);
}

/// While DeepSpeed's Python goes through the parameters, a GPU has next to nothing to do for tens
/// of milliseconds, of which its limit averages over the last alone.
bool HasLongRests(const Schedule& schedule) {
  return std::any_of(schedule.works().begin(), schedule.works().end(),
                     [](const Work& work) { return work.python != PythonCalls{}; });
}

/// The kernels of a step that follow one another too slowly to count towards the limit.
struct Resting {
  std::vector<WorkCost> others;  // costs by work, without those kernels
  Duration time;                 // what they take in a step
};

/// Of a step of DeepSpeed, the optimizer's: they come between its calls.
Resting RestingKernels(const Schedule& schedule,
                       const Graph& graph,
                       const std::vector<WorkCost>& costs) {
  Resting resting{costs, {}};
  const std::vector<std::int64_t> times = TimesInStep(schedule);
  for (const Task& task : schedule.tasks()) {
    WorkCost& cost = resting.others[task.work.index()];
    if (PhaseOf(task, schedule, graph) == StepPhase::kOptimizer && cost.device > Duration()) {
      resting.time += cost.device * times[task.work.index()];
      cost.device = cost.gaps = Duration();
    }
  }
  return resting;
}

/// What a rest adds to the time over which the limit averages. From the clocks of four steps of
/// DeepSpeed on one H200 (docs/design/costs/power.md).
Duration Averaged(Duration rest) {
  constexpr double kWindow = 0.016;  // s
  return Duration::FromNs(
      static_cast<std::int64_t>(1e9 * kWindow * (1 - std::exp(-rest.seconds() / kWindow))));
}

}  // namespace

ClockedCosts CostsAtClock(const Schedule& schedule, const PredictionInputs& inputs) {
  const auto& power = inputs.cluster.gpu.power;
  if (!power || inputs.clock_mhz > 0) {
    return {CostsAt(schedule, inputs, inputs.clock_mhz), inputs.clock_mhz};
  }
  // A clock that is 1 % lower makes a step at most 1 % longer, and that a clock 0.5 % higher: every
  // round leaves half of the distance, mostly a fourth.
  constexpr int kRounds = 20;
  PredictionInputs at_clock = inputs;
  double& clock = at_clock.clock_mhz;
  clock = ProfiledClock(inputs.profile, *power);
  std::vector<WorkCost> costs = CostsAt(schedule, inputs, clock);
  const bool has_long_rests = HasLongRests(schedule);
  const Resting resting =
      has_long_rests ? RestingKernels(schedule, inputs.graph, costs) : Resting{costs, {}};
  const double energy =
      StepEnergy(schedule, inputs.graph, inputs.profile, inputs.cluster, resting.others);
  for (int round = 0; round < kRounds; ++round) {
    const SimulationOptions options = OptionsFor(schedule, at_clock);
    StepMetrics metrics(schedule, costs, options.warmup_steps, options.start_gap);
    const std::array<Observer*, 1> observers = {&metrics};
    const Simulation simulation =
        Simulate(schedule, costs, options, std::span(observers).first(has_long_rests ? 1 : 0));
    if (simulation.outcome != Outcome::kCompleted) {
      return {CostsAt(schedule, inputs, 0), 0};
    }
    Duration powered = simulation.measured_step_times(options.warmup_steps).front();
    if (has_long_rests) {
      const Duration busy = metrics.compute() + metrics.exposed_communication() - resting.time;
      powered = busy + Averaged(powered - busy);
    }
    const double next = std::round(ClockWithinLimit(inputs.cluster, energy, powered));
    if (next == clock) {
      break;
    }
    clock = next;
    costs = CostsAt(schedule, inputs, clock);
  }
  return {std::move(costs), clock};
}

double FindStepClock(const Schedule& schedule, const PredictionInputs& inputs) {
  return CostsAtClock(schedule, inputs).clock_mhz;
}

}  // namespace dcsim
