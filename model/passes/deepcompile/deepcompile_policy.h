#pragma once

#include <span>
#include <string_view>

#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/passes/policy_inputs.h"

namespace dcsim {

/// "deepcompile-0.19.6" and the others of the kind.
std::span<const std::string_view> DeepCompilePolicies();
bool IsDeepCompile(std::string_view policy);

/// Policies deepcompile-0.17.1, deepcompile-0.19.6 and deepcompile-0.19.8: what DeepSpeed's passes
/// make of a graph once the last of them has run (default schedule, step 5 and later).
///
/// ZeRO-3: gathers, waits, releases and reductions are inserted (BuildPassGraph) and ordered
/// (ScheduleGathers, with 0.19.8's budget), then moved ahead and fused (PrefetchGathers), then some
/// parameters stay gathered (SelectKept). Without measurements prefetch and selective_gather do
/// nothing and 0.19.8's budget is one gather, as DeepSpeed does when its profile is incomplete.
/// Instead of the last two, optimizer states may leave the GPU (StateOffload). ZeRO-1, 2: ops in
/// recorded order, each gradient reduced where it is made. Passes: PassesOf.
///
///   spec   options agree (Resolve checks them)
Plan ResolveDeepCompile(const PlanSpec& spec,
                        const Graph& graph,
                        int ranks,
                        const PolicyInputs& inputs);

}  // namespace dcsim
