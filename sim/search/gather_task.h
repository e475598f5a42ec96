#pragma once

#include <span>

#include "model/cost/collective_cost.h"
#include "sim/engine/gpu_sharing.h"

namespace dcsim {

/// A gather in one launch, as EstimateWorks prices it and GpuTask::Of takes it.
GpuTask GatherTask(const Cluster& cluster,
                   Engine engine,
                   std::span<const CollectivePart> parts,
                   int ranks);

}  // namespace dcsim
