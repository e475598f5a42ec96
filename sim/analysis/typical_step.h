#pragma once

#include <cstdint>
#include <span>

#include "model/cost/work_cost.h"
#include "model/ir/schedule.h"
#include "sim/engine/simulate.h"

namespace dcsim {

/// Steps among which the typical one is looked for: as many as a measurement has at least.
inline constexpr std::uint32_t kTypicalSteps = 10;

/// `options`, so warmed up that the measured step is the one of median time among the first
/// kTypicalSteps behind the warm-up of `options`: where the allocator gives its cache back to the
/// driver, steps differ (what one gives back, the next one finds missing). Of an even number of
/// times the median is the upper one, as in measured results. Unchanged for a schedule that does
/// not complete.
///
///   costs   by work
SimulationOptions AtTypicalStep(const Schedule& schedule,
                                std::span<const WorkCost> costs,
                                SimulationOptions options);

}  // namespace dcsim
