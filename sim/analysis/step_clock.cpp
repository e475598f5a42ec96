#include "sim/analysis/step_clock.h"

#include <cmath>

#include "model/cost/power.h"

namespace dcsim {
namespace {

std::vector<WorkCost> CostsAt(const Schedule& schedule,
                              const PredictionInputs& inputs,
                              double clock_mhz) {
  return EstimateWorks(schedule, inputs.graph, inputs.profile, inputs.cluster, clock_mhz);
}

}  // namespace

double FindStepClock(const Schedule& schedule, const PredictionInputs& inputs) {
  const auto& power = inputs.cluster.gpu.power;
  if (!power) {
    return 0;
  }
  // A clock that is 1 % lower makes a step at most 1 % longer, and that a clock 0.5 % higher: every
  // round leaves half of the distance, mostly a fourth.
  constexpr int kRounds = 20;
  const SimulationOptions options = OptionsFor(schedule, inputs.cluster);
  double clock = ProfiledClock(inputs.profile, *power);
  const double energy = StepEnergy(schedule, inputs.graph, inputs.profile, inputs.cluster,
                                   CostsAt(schedule, inputs, clock));
  for (int round = 0; round < kRounds; ++round) {
    const Simulation simulation = Simulate(schedule, CostsAt(schedule, inputs, clock), options, {});
    if (simulation.outcome != Outcome::kCompleted) {
      return 0;
    }
    const Duration step = simulation.measured_step_times(options.warmup_steps).front();
    const double next = std::round(ClockWithinLimit(*power, energy, step));
    if (next == clock) {
      break;
    }
    clock = next;
  }
  return clock;
}

ClockedCosts CostsAtClock(const Schedule& schedule, const PredictionInputs& inputs) {
  const double clock = inputs.clock_mhz > 0 ? inputs.clock_mhz : FindStepClock(schedule, inputs);
  return {CostsAt(schedule, inputs, clock), clock};
}

}  // namespace dcsim
