#include "sim/analysis/typical_step.h"

#include <algorithm>

#include "model/base/median.h"

namespace dcsim {

SimulationOptions AtTypicalStep(const Schedule& schedule,
                                std::span<const WorkCost> costs,
                                SimulationOptions options) {
  const std::uint32_t measured = options.measured_steps;
  options.measured_steps = kTypicalSteps;
  const Simulation simulation = Simulate(schedule, costs, options, {});
  options.measured_steps = measured;
  if (simulation.outcome != Outcome::kCompleted) {
    return options;
  }
  const auto times = simulation.measured_step_times(options.warmup_steps);
  const auto typical = std::find(times.begin(), times.end(), Median(times));
  options.warmup_steps += static_cast<std::uint32_t>(typical - times.begin());
  return options;
}

}  // namespace dcsim
