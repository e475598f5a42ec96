#pragma once

#include <string>

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// The events of a graph in host order: "Ga" gathers a, "Gb,n" two at once, W waits, F frees, R
/// reduces; "|" is an op.
std::string EventText(const Graph& graph, const GraphPlan& plan);

}  // namespace dcsim
