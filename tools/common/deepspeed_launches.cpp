#include "tools/common/deepspeed_launches.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "dcsim_version.h"
#include "model/base/error.h"
#include "model/base/text.h"
#include "model/graph/fused_casts.h"
#include "model/graph/step_facts.h"
#include "model/ir/plan_options.h"
#include "model/ir/recorded_order.h"

namespace dcsim {
namespace {

constexpr std::string_view kFormat = "dc-launches/1";

/// Options with one value in DeepCompile, by the key of a plan. What is in none of the lists here
/// is the job's own (accumulation, clipping, optimizer), or is not looked at by ZeRO-3.
const Json& FixedOptions() {
  static const Json fixed = {{"stage", 3},
                             {"flush_collectives", "per_parameter"},
                             {"gradient_buckets", "deepcompile"},
                             {"buffer_lifetime", "pr_8036"},
                             {"gradient_reduction", "each_backward"},
                             {"communicators", 1},
                             {"gather_engine", "nccl"},
                             {"align_tensors", false},
                             {"sync_before_allgather", false},
                             {"sync_after_allgather", false},
                             {"sync_before_reduce", false},
                             {"sync_after_reduce", false},
                             {"release", "record_stream"},
                             {"allocator", "default"},
                             {"offload_parameters", false}};
  return fixed;
}

bool HasCastsToFuse(const Graph& graph) {
  const Graph fused = FuseCasts(graph);
  return std::any_of(fused.params.begin(), fused.params.end(),
                     [](const Param& param) { return param.gather_dtype.has_value(); });
}

/// Where one graph needs its parameters.
struct FirstUses {
  std::vector<std::pair<std::size_t, ParamId>> uses;  // by position; ties by name
  std::map<std::size_t, ParamId> touches;  // positions of ops that are first to name a parameter,
                                           // views included
  std::vector<bool> runs;                  // by position: whether the op has a kernel

  std::optional<std::size_t> FindKernel(std::size_t from) const {
    const auto found =
        std::find(runs.begin() + static_cast<std::ptrdiff_t>(from), runs.end(), true);
    return found == runs.end() ? std::nullopt : std::optional(found - runs.begin());
  }
};

/// Position of the first op with a kernel that reads each parameter in use, by parameter; the
/// number of ops where there are views of it alone.
std::map<ParamId, std::size_t> FindKernelUses(const Graph& graph,
                                              const GraphPlan& decisions,
                                              const StepFacts& facts,
                                              FirstUses& found) {
  std::map<ParamId, std::size_t> first;
  for (std::size_t i = 0; i < decisions.order.size(); ++i) {
    const OpId id = decisions.order[i];
    for (const ValueId input : graph.op(id).inputs) {
      const ParamId param =
          input.is_none() ? ParamId::None() : facts.param_of[graph.storage_of(input).index()];
      if (param.is_none()) {
        continue;
      }
      const auto [entry, is_new] = first.emplace(param, decisions.order.size());
      if (is_new) {
        found.touches.emplace(i, param);
      }
      if (found.runs[i]) {
        entry->second = std::min(entry->second, i);
      }
    }
  }
  return first;
}

FirstUses FindFirstUses(const Graph& graph, const GraphPlan& decisions, const StepFacts& facts) {
  FirstUses found;
  for (const OpId id : decisions.order) {
    found.runs.push_back(!facts.is_view[id.index()]);
  }
  for (const auto& [param, position] : FindKernelUses(graph, decisions, facts, found)) {
    found.uses.emplace_back(position, param);
  }
  std::sort(found.uses.begin(), found.uses.end(), [&graph](const auto& a, const auto& b) {
    return std::tie(a.first, graph.param(a.second).name) <
           std::tie(b.first, graph.param(b.second).name);
  });
  return found;
}

/// The parameter before whose first use a launch stands; None() for the start of the graph.
/// Nothing where it stands before no first use.
std::optional<ParamId> FindAnchor(const FirstUses& found, std::size_t position) {
  const auto first_kernel = found.FindKernel(0);
  if (!first_kernel || position <= *first_kernel) {
    return ParamId::None();
  }
  if (const auto touch = found.touches.find(position); touch != found.touches.end()) {
    return touch->second;
  }
  const auto kernel = found.FindKernel(position);
  const auto use = std::find_if(found.uses.begin(), found.uses.end(),
                                [&](const auto& each) { return each.first == kernel; });
  return use == found.uses.end() ? std::nullopt : std::optional(use->second);
}

bool IsRecordedOrder(const Subgraph& subgraph, const GraphPlan& decisions) {
  for (std::size_t i = 0; i < decisions.order.size(); ++i) {
    if (decisions.order[i] != OpId(subgraph.first_op + i)) {
      return false;
    }
  }
  return true;
}

/// One graph of a plan on its way into the file.
struct GraphLaunches {
  Json launches = Json::array();
  std::vector<std::string> faults;
};

/// `kept_before`: persistent parameters that an earlier graph of the step gathers.
GraphLaunches FindLaunches(const Graph& graph,
                           const GraphPlan& decisions,
                           const StepFacts& facts,
                           const std::set<ParamId>& kept_before) {
  GraphLaunches result;
  const FirstUses found = FindFirstUses(graph, decisions, facts);
  for (const GatherGroup& group : decisions.gathers) {
    Json params = Json::array();
    for (const ParamId id : group.params) {
      if (!kept_before.contains(id)) {
        params.push_back(graph.param(id).name);
      }
    }
    if (params.empty()) {
      continue;
    }
    const auto anchor = FindAnchor(found, group.position);
    if (!anchor) {
      result.faults.push_back("the launch of " + params.front().get<std::string>() + " before op " +
                              std::to_string(group.position) +
                              ": it can only stand where a parameter is first used");
      continue;
    }
    const Json before = anchor->is_none() ? Json(nullptr) : Json(graph.param(*anchor).name);
    result.launches.push_back({{"before", before}, {"params", std::move(params)}});
  }
  return result;
}

/// What keeps the decisions of one graph from being launches at first uses.
std::vector<std::string> FindGraphFaults(const Subgraph& subgraph, const GraphPlan& decisions) {
  std::vector<std::string> faults;
  if (!IsRecordedOrder(subgraph, decisions)) {
    faults.emplace_back("order: ops in another order than the recorded one");
  }
  if (!decisions.events.empty()) {
    faults.emplace_back("events: waits, releases and reductions that the plan places itself");
  }
  if (!decisions.state_moves.empty()) {
    faults.emplace_back("state_moves: optimizer states that leave the GPU");
  }
  return faults;
}

void AppendGraphFaults(std::size_t index,
                       const std::vector<std::string>& of_graph,
                       std::vector<std::string>& faults) {
  for (const std::string& fault : of_graph) {
    faults.push_back("graph " + std::to_string(index) + ", " + fault);
  }
}

/// By graph, all launches of a plan without other faults.
std::vector<GraphLaunches> FindLaunches(const Plan& plan, const Graph& graph) {
  const PlannedGraph planned(graph, plan.options);
  const StepFacts facts = AnalyseStep(planned.get());
  std::set<ParamId> kept;
  std::vector<GraphLaunches> launches;
  for (const GraphPlan& decisions : plan.graphs) {
    launches.push_back(FindLaunches(planned.get(), decisions, facts, kept));
    for (const GatherGroup& group : decisions.gathers) {
      for (const ParamId id : group.params) {
        if (std::binary_search(plan.persistent.begin(), plan.persistent.end(), id)) {
          kept.insert(id);
        }
      }
    }
  }
  return launches;
}

/// By graph, the parameters in the order of their first uses, ops as recorded.
std::vector<Json> RecordedFirstUses(const Graph& graph, const ScheduleOptions& options) {
  const PlannedGraph planned(graph, options);
  const StepFacts facts = AnalyseStep(planned.get());
  std::vector<Json> names;
  for (const Subgraph& subgraph : planned.get().graphs) {
    GraphPlan decisions;
    decisions.order = RecordedOrder(subgraph);
    names.push_back(Json::array());
    for (const auto& [position, param] : FindFirstUses(planned.get(), decisions, facts).uses) {
      names.back().push_back(graph.param(param).name);
    }
  }
  return names;
}

Json PrintPredicted(const Result& predicted) {
  return {{"step_time_ns", predicted.step_time.ns()},
          {"bound_ns", predicted.bound ? Json(predicted.bound->ns()) : Json(nullptr)},
          {"peak_allocated_bytes", predicted.peak_allocated.count()},
          {"peak_reserved_bytes", predicted.peak_reserved.count()},
          {"peak_reserved_most_bytes", predicted.peak_reserved_most.count()}};
}

Json PrintSettings(const ScheduleOptions& options) {
  return {{"reduce_bucket_size", options.reduce_bucket},
          {"double_buffer", options.double_buffer},
          {"gradient_accumulation_steps", options.gradient_accumulation_steps},
          {"gradient_clipping",
           options.gradient_clipping ? Json(*options.gradient_clipping) : Json(nullptr)}};
}

std::string JoinFaults(const std::vector<std::string>& faults) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, faults.size()); ++i) {
    text += (i == 0 ? "" : "; ") + faults[i];
  }
  return faults.size() > kMost ? text + "; and " + std::to_string(faults.size() - kMost) + " more"
                               : text;
}

}  // namespace

std::vector<std::string> FindDeepSpeedFaults(const ScheduleOptions& options, const Graph& graph) {
  std::vector<std::string> faults;
  Json printed;
  PrintScheduleOptions(options, printed);
  for (const auto& [key, only] : FixedOptions().items()) {
    if (printed.contains(key) && printed.at(key) != only) {
      faults.push_back(key + ": " + printed.at(key).dump() + ", DeepSpeed knows " + only.dump());
    }
  }
  if (options.stage == 3 && !options.fuse_casts && HasCastsToFuse(graph)) {
    faults.emplace_back(
        "fuse_casts: false, DeepSpeed gathers parameters in the dtype they are cast to");
  }
  return faults;
}

std::vector<std::string> FindDeepSpeedFaults(const Plan& plan, const Graph& graph) {
  std::vector<std::string> faults = FindDeepSpeedFaults(plan.options, graph);
  for (std::size_t i = 0; i < plan.graphs.size(); ++i) {
    AppendGraphFaults(i, FindGraphFaults(graph.graphs[i], plan.graphs[i]), faults);
  }
  if (!faults.empty()) {
    return faults;
  }
  const std::vector<GraphLaunches> launches = FindLaunches(plan, graph);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    AppendGraphFaults(i, launches[i].faults, faults);
  }
  return faults;
}

void RequireDeepSpeedPlan(const Plan& plan, const Graph& graph) {
  if (const auto faults = FindDeepSpeedFaults(plan, graph); !faults.empty()) {
    throw Error("--save-deepspeed-plan: DeepSpeed cannot run this plan: " + JoinFaults(faults));
  }
}

void RequireDeepSpeedSpace(const SearchSpace& space, const Graph& graph, const std::string& path) {
  std::vector<std::string> faults;
  for (const ScheduleOptions& options : space.options) {
    for (const std::string& fault : FindDeepSpeedFaults(options, graph)) {
      if (std::find(faults.begin(), faults.end(), fault) == faults.end()) {
        faults.push_back(fault);
      }
    }
  }
  if (!faults.empty()) {
    throw Error("--save-deepspeed-plan: " + (path.empty() ? "the default space" : path) +
                " holds what DeepSpeed cannot do: " + JoinFaults(faults) +
                "; configs/spaces/deepspeed.yaml holds what it can");
  }
}

Json PrintDeepSpeedLaunches(const Plan& plan, const Graph& graph, const Result& predicted) {
  return PrintDeepSpeedLaunches(plan, graph, graph, predicted);
}

Json PrintDeepSpeedLaunches(const Plan& plan,
                            const Graph& recorded,
                            const Graph& graph,
                            const Result& predicted) {
  RequireDeepSpeedPlan(plan, graph);
  Json document;
  document["format"] = kFormat;
  document["versions"] = {{"dc-sim", kVersion}};
  document["workload"] = {{"name", graph.name}, {"graph", HexDigits(recorded.hash)}};
  document["ranks"] = plan.ranks;
  document["cluster"] = {{"name", predicted.cluster.at("name")},
                         {"gpu", predicted.cluster.at("gpu").at("name")}};
  document["predicted"] = PrintPredicted(predicted);
  document["settings"] = PrintSettings(plan.options);
  document["persistent"] = Json::array();
  for (const ParamId id : plan.persistent) {
    document["persistent"].push_back(graph.param(id).name);
  }
  document["graphs"] = Json::array();
  const std::vector<GraphLaunches> launches = FindLaunches(plan, graph);
  const std::vector<Json> first_uses = RecordedFirstUses(recorded, plan.options);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    if (!first_uses[i].empty()) {
      const bool forward = graph.graphs[i].direction == Direction::kForward;
      document["graphs"].push_back({{"direction", forward ? "forward" : "backward"},
                                    {"first_uses", first_uses[i]},
                                    {"launches", launches[i].launches}});
    }
  }
  return document;
}

}  // namespace dcsim
