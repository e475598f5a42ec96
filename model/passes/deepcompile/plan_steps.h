#pragma once

#include <vector>

#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/passes/deepcompile/offload_activation.h"
#include "model/passes/deepcompile/pass_graph.h"
#include "model/passes/deepcompile/prefetch.h"

namespace dcsim {

/// The decisions for a graph whose nodes are issued in the order of `steps`, with the moves of its
/// activations, ascending. Of a parameter's releases the last one counts: that is when DeepCompile
/// frees it.
GraphPlan PlanSteps(const Graph& graph,
                    const PassGraph& nodes,
                    const std::vector<PassStep>& steps,
                    const std::vector<ActivationStep>& moves = {});

}  // namespace dcsim
