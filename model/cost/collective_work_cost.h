#pragma once

#include <vector>

#include "model/cost/work_cost.h"

namespace dcsim {

/// The cost of a collective by NCCL or by copy engines, as EstimateWorks says.
///
///   shifted_shards   by parameter: whether its shard begins at no multiple of 16 bytes; parameters
///                    behind its end have none that does
WorkCost CollectiveWorkCost(const Cluster& cluster,
                            const std::vector<bool>& shifted_shards,
                            const Collective& collective);

}  // namespace dcsim
