#pragma once

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// What policy plain-1 begins with, and all of it that is not a pass over gathers or states: ops in
/// recorded order; in ZeRO-3 (pass "gather_at_use") each parameter of a graph is gathered right
/// before its first use, in a launch of its own, and released after its last.
Plan ResolvePlain(const PlanSpec& spec, const Graph& graph, int ranks);

}  // namespace dcsim
