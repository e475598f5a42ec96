#include "sim/analysis/step_clock.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "model/cost/power.h"
#include "sim/analysis/step_metrics.h"

namespace dcsim {
namespace {

std::vector<WorkCost> CostsAt(const Schedule& schedule,
                              const PredictionInputs& inputs,
                              double clock_mhz) {
  return EstimateWorks(schedule, inputs.graph, inputs.profile, inputs.cluster, clock_mhz);
}

/// While DeepSpeed's Python goes through the parameters, a GPU has next to nothing to do for tens
/// of milliseconds, over which its limit does not average.
bool HasLongRests(const Schedule& schedule) {
  return std::any_of(schedule.works().begin(), schedule.works().end(),
                     [](const Work& work) { return work.python != PythonCalls{}; });
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
  const double energy = StepEnergy(schedule, inputs.graph, inputs.profile, inputs.cluster, costs);
  const bool has_long_rests = HasLongRests(schedule);
  for (int round = 0; round < kRounds; ++round) {
    const SimulationOptions options = OptionsFor(schedule, at_clock);
    StepMetrics metrics(schedule, costs, options.warmup_steps, options.start_gap);
    const std::array<Observer*, 1> observers = {&metrics};
    const Simulation simulation =
        Simulate(schedule, costs, options, std::span(observers).first(has_long_rests ? 1 : 0));
    if (simulation.outcome != Outcome::kCompleted) {
      return {CostsAt(schedule, inputs, 0), 0};
    }
    const Duration powered = has_long_rests
                                 ? metrics.compute() + metrics.exposed_communication()
                                 : simulation.measured_step_times(options.warmup_steps).front();
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
