#pragma once

#include "model/ir/schedule.h"
#include "sim/analysis/predict.h"

namespace dcsim {

/// SM clock in whole MHz at which the hungriest GPU runs a schedule's steps within its power limit
/// (GpuSpec::power): a lower clock makes the step longer, which takes fewer watts. 0 when the GPU
/// file has no power model or the step does not complete. Throws Error when the cluster cannot
/// price a task.
double FindStepClock(const Schedule& schedule, const PredictionInputs& inputs);

/// Costs of a schedule's works at inputs.clock_mhz, or, where it says none, at this schedule's own
/// clock, and that clock (0: as profiled).
struct ClockedCosts {
  std::vector<WorkCost> costs;
  double clock_mhz = 0;
};
ClockedCosts CostsAtClock(const Schedule& schedule, const PredictionInputs& inputs);

}  // namespace dcsim
