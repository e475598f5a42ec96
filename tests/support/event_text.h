#pragma once

#include <functional>
#include <string>

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// The events of a graph in host order: "Ga" gathers a, "Gb,n" two at once, W waits, F frees, R
/// reduces; "|" is an op. Parameters are called by `name`; `end` stands behind an event's last.
std::string EventText(const GraphPlan& plan,
                      const std::function<std::string(ParamId)>& name,
                      const std::string& end = "");

/// The same by the parameters' names, with a blank behind each event.
std::string EventText(const Graph& graph, const GraphPlan& plan);

}  // namespace dcsim
