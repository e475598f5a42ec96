#include "sim/analysis/step_clock.h"

#include <cmath>
#include <utility>

#include "model/cost/power.h"

namespace dcsim {
namespace {

std::vector<WorkCost> CostsAt(const Schedule& schedule,
                              const PredictionInputs& inputs,
                              double clock_mhz) {
  return EstimateWorks(schedule, inputs.graph, inputs.profile, inputs.cluster, clock_mhz);
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
  for (int round = 0; round < kRounds; ++round) {
    const SimulationOptions options = OptionsFor(schedule, at_clock);
    const Simulation simulation = Simulate(schedule, costs, options, {});
    if (simulation.outcome != Outcome::kCompleted) {
      return {CostsAt(schedule, inputs, 0), 0};
    }
    const Duration step = simulation.measured_step_times(options.warmup_steps).front();
    const double next = std::round(ClockWithinLimit(inputs.cluster, energy, step));
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
