#pragma once

#include <string>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// What is wrong with a plan's moves of optimizer states: positions out of place, a state that no
/// trainable parameter has, a state that leaves twice, comes back without having left, or is still
/// away when the optimizer needs it. Adds to `faults`.
void CheckStateMoves(const Plan& plan, const Graph& graph, std::vector<std::string>& faults);

}  // namespace dcsim
