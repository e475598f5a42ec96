#pragma once

#include "model/ir/document.h"
#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// Reads a dc-plan-spec/1 document. Throws Error with every fault: unknown keys and names with the
/// nearest known one, values out of range.
PlanSpec ReadPlanSpec(const Json& document, const Locator& locate);

/// The canonical JSON of a spec; every key, defaults included. ReadPlanSpec gives the spec back.
Json PrintPlanSpec(const PlanSpec& spec);

/// Reads a dc-plan/1 document for a graph: parameters stand by name, orders that are the recorded
/// one as "recorded". Throws Error with every fault; FindPlanFaults checks the decisions
/// themselves.
Plan ReadPlan(const Json& document, const Graph& graph, const Locator& locate);

/// The canonical JSON of a plan. ReadPlan gives the plan back.
Json PrintPlan(const Plan& plan, const Graph& graph);

}  // namespace dcsim
