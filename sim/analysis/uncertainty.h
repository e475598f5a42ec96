#pragma once

#include <optional>
#include <string>

#include "model/ir/schedule.h"
#include "model/machine/cluster.h"
#include "sim/analysis/step_clock.h"

namespace dcsim {

/// Half-width of the interval around a predicted step time in which nine of ten measured ones are
/// expected, or why nobody knows it: one clause, for people.
struct StepTimeBound {
  std::optional<Duration> half_width;
  std::string unknown;  // empty where there is a half-width
};

/// The bound of a step. None where the GPU file does not say how wrong its parts are, and where the
/// step has a collective like which nothing was measured (Estimate::of_link).
///
/// The step is simulated again with ops, collectives, what is lost beside others and host calls
/// each slower by one standard deviation (PartErrors), and, where nobody has measured how long
/// the streams that wait delay kernels, without what is expected of them (DeviceGaps::waiting);
/// the parts are independent:
///
///   1.645 * sqrt(sum of squared differences + PartErrors::step^2)
///
/// An op errs as its source does: profiled, by the roofline, or guessed. A collective errs by
///
///   sqrt(collectives^2 + (sizes * d.sizes)^2 + (ranks * d.ranks)^2)
///
/// with d its MeasuredDistance. Nothing holds hosts that are slow for a while
/// (docs/lab/accuracy.md, Slow hosts).
StepTimeBound FindStepTimeBound(Duration step_time,
                                const Schedule& schedule,
                                const ClockedCosts& clocked,
                                const Cluster& cluster);

}  // namespace dcsim
