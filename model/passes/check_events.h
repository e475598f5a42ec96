#pragma once

#include <string>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// The gradient of a parameter among a backward graph's outputs, or null.
const GraphOutput* FindGradient(const Subgraph& subgraph, ParamId param);

/// Adds what is wrong with the events of a graph: every parameter in use is gathered, waited for
/// before its first use and released behind its last one (or in a later graph that uses it), every
/// gradient reduced behind its op, each once; positions ascend. `decisions.order` is right.
void CheckEvents(const Graph& graph,
                 std::size_t g,
                 const GraphPlan& decisions,
                 std::vector<std::string>& faults);

}  // namespace dcsim
