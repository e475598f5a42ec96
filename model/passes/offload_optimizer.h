#pragma once

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// Pass "offload_optimizer": optimizer states leave as a step begins and come back once its last
/// graph has ended, when activations and buckets have gone: in DeepSpeed's order (by dtype;
/// exp_avg, exp_avg_sq, hp_param) all of them, or until so many bytes leave.
void OffloadStates(const Graph& graph, const OffloadOptimizer& offload, Plan& plan);

}  // namespace dcsim
