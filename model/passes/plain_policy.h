#pragma once

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// Policy plain-1: ops in recorded order; ZeRO-3 gathers each parameter of a graph right before its
/// first use, or `gather_ahead` parameters earlier in the order of first uses; released after its
/// last use unless `keep_gathered` names it.
///
/// With gather_ahead = k, the gather of the i-th parameter is issued right before the first use of
/// the (i-k)-th, those of the first k before the graph's first op, each as a launch of its own.
Plan ResolvePlain(const PlanSpec& spec, const Graph& graph, int ranks);

}  // namespace dcsim
