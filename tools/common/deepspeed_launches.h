#pragma once

#include <string>
#include <vector>

#include "model/ir/document.h"
#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/ir/result.h"
#include "sim/search/space.h"

namespace dcsim {

/// What of these options DeepSpeed's DeepCompile cannot do, one sentence each: another stage than
/// 3, copy engines, a second communicator and so on. Empty when it can do all.
std::vector<std::string> FindDeepSpeedFaults(const ScheduleOptions& options, const Graph& graph);

/// The same of a whole plan: also of its order, events, moves of optimizer states, and of launches
/// that stand where no parameter is first used.
std::vector<std::string> FindDeepSpeedFaults(const Plan& plan, const Graph& graph);

/// Throws Error with every fault that FindDeepSpeedFaults finds.
void RequireDeepSpeedPlan(const Plan& plan, const Graph& graph);
/// The same for every combination of options of a search space; `path` is its file, empty for the
/// default space.
void RequireDeepSpeedSpace(const SearchSpace& space, const Graph& graph, const std::string& path);

/// dc-launches/1 (docs/reference/formats.md): the plan as launches before first uses of parameters,
/// which dcsim_deepspeed puts into the graphs of a job that DeepSpeed trains, with what `predicted`
/// expects of it. Throws Error as RequireDeepSpeedPlan does.
Json PrintDeepSpeedLaunches(const Plan& plan, const Graph& graph, const Result& predicted);
/// The same of a plan for `graph`, which may be the compiled form of `recorded`: DeepSpeed inserts
/// launches before Inductor lowers the graph, so first uses are those of the recorded operators.
Json PrintDeepSpeedLaunches(const Plan& plan,
                            const Graph& recorded,
                            const Graph& graph,
                            const Result& predicted);

}  // namespace dcsim
