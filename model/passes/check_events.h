#pragma once

#include <string>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// The gradient of a parameter among a backward graph's outputs, or null.
const GraphOutput* FindGradient(const Subgraph& subgraph, ParamId param);

/// By storage: the position behind the last op of the order that makes or changes it, views left
/// out; 0 where none does.
std::vector<std::size_t> FindWritten(const Graph& graph, const std::vector<OpId>& order);

/// Adds what is wrong with the events of a graph: every parameter in use is gathered, waited for
/// before its first use and released behind its last one (or in a later graph that uses it), every
/// gradient reduced behind its op, each once; positions ascend. FSDP2's groups are gathered whole,
/// may stay, and are reduced before views of their gradients are made. `decisions.order` is right.
void CheckEvents(const Graph& graph,
                 std::size_t g,
                 Sharding sharding,
                 const GraphPlan& decisions,
                 std::vector<std::string>& faults);

}  // namespace dcsim
