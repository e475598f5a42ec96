#pragma once

#include <optional>

#include "model/cost/cluster.h"
#include "model/ir/schedule.h"
#include "sim/analysis/step_clock.h"

namespace dcsim {

/// Half-width of the interval around a predicted step time in which nine of ten measured ones are
/// expected. None when the GPU file does not say how wrong its parts are.
///
/// The step is simulated again with ops, collectives, what is lost beside others and host calls
/// each slower by one standard deviation (PartErrors), and, where nobody has measured how long
/// the streams that wait delay kernels, without what is expected of them (DeviceGaps::waiting);
/// the parts are independent:
///
///   1.645 * sqrt(sum of squared differences + PartErrors::step^2)
///
/// Nothing holds hosts that are slow for a while (docs/accuracy.md, Slow hosts).
std::optional<Duration> StepTimeBound(Duration step_time,
                                      const Schedule& schedule,
                                      const ClockedCosts& clocked,
                                      const Cluster& cluster);

}  // namespace dcsim
