#pragma once

#include <span>
#include <string_view>

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// Names of the policies that `Resolve` knows, versions included.
std::span<const std::string_view> PolicyNames();

/// Turns what a person asked for into every single decision, deterministically.
///
///   spec    checked already for ranges (ReadPlanSpec)
///   ranks   data-parallel ranks, >= 1
///
/// Throws Error for an unknown policy, options that contradict each other, and patterns of
/// `keep_gathered` that match no parameter.
Plan Resolve(const PlanSpec& spec, const Graph& graph, int ranks);

/// What is wrong with a plan for this graph: ops missing or out of order, gathers after the first
/// use or of parameters not in use. Ids of parameters are in range already (ReadPlan). Empty when
/// the plan can be lowered.
std::vector<std::string> FindPlanFaults(const Plan& plan, const Graph& graph);

}  // namespace dcsim
