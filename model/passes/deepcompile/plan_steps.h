#pragma once

#include <vector>

#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/passes/deepcompile/pass_graph.h"
#include "model/passes/deepcompile/prefetch.h"

namespace dcsim {

/// The decisions for a graph whose nodes are issued in the order of `steps`. Of a parameter's
/// releases the last one counts: that is when DeepCompile frees it.
GraphPlan PlanSteps(const Graph& graph, const PassGraph& nodes, const std::vector<PassStep>& steps);

}  // namespace dcsim
