#pragma once

#include <span>

#include "model/base/units.h"
#include "model/cost/work_cost.h"
#include "model/ir/graph.h"
#include "model/ir/profile.h"
#include "model/ir/schedule.h"
#include "model/machine/cluster.h"

namespace dcsim {

/// SM clock in MHz at which the profile's ops were measured; the GPU file's figure for a profile
/// that does not say, and for none.
double ProfiledClock(const Profile* profile, const PowerModel& power);

/// Energy in J that one step of a schedule would take beyond idle at the highest clock, on the
/// hungriest GPU.
///
///   costs   of EstimateWorks at the profiled clock, by work
///
/// Sum of time * PowerModel::watts over all tasks, gaps between kernels left out (a product's are
/// less where it reaches less than large ones), times what the workload's own profile says of
/// it: a profile at a lower clock than the highest ran at the power limit, which gives its energy;
/// one at the highest took no more than the limit.
double StepEnergy(const Schedule& schedule,
                  const Graph& graph,
                  const Profile* profile,
                  const Cluster& cluster,
                  std::span<const WorkCost> costs);

/// W that each GPU of a cluster may take. The GPU needs a power model.
double PowerLimit(const Cluster& cluster);

/// SM clock in MHz that the power limit leaves a GPU that takes `energy` (J, beyond idle and at the
/// highest clock) every `step`. The GPU needs a power model.
double ClockWithinLimit(const Cluster& cluster, double energy, Duration step);

}  // namespace dcsim
