#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/passes/policy_inputs.h"

namespace dcsim {

/// Names of the policies that `Resolve` knows, versions included.
std::span<const std::string_view> PolicyNames();

/// Turns what a person asked for into every single decision, deterministically.
///
///   spec    checked already for ranges (ReadPlanSpec)
///   ranks   data-parallel ranks, >= 1
///   inputs  what is known about the machine; plain-1 asks for nothing, DeepCompile's policies do
///           what DeepSpeed does without measurements when it is empty
///
/// Throws Error for an unknown policy, options that contradict each other, and patterns of
/// `keep_gathered` that match no parameter.
Plan Resolve(const PlanSpec& spec, const Graph& graph, int ranks, const PolicyInputs& inputs = {});

/// Whether a spec's policy goes by what is known about the machine.
bool UsesMeasurements(const PlanSpec& spec);

/// What no plan can ask for, whatever made it; empty when the options agree.
std::vector<std::string> FindOptionFaults(const ScheduleOptions& options);

/// What the workload's parameters do not allow, or "".
std::string FindParamFault(const ScheduleOptions& options, const Graph& graph);

/// What is wrong with a plan for this graph: ops missing or out of order, gathers after the first
/// use or of parameters not in use. Ids of parameters are in range already (ReadPlan). Empty when
/// the plan can be lowered.
std::vector<std::string> FindPlanFaults(const Plan& plan, const Graph& graph);

}  // namespace dcsim
