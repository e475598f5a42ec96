#include "model/passes/deepcompile/deepcompile_policy.h"

#include <algorithm>
#include <array>
#include <map>

#include "model/base/scaled.h"
#include "model/graph/fused_casts.h"
#include "model/graph/sharding.h"
#include "model/passes/deepcompile/activation_moves.h"
#include "model/passes/deepcompile/gather_scheduler.h"
#include "model/passes/deepcompile/inductor_order.h"
#include "model/passes/deepcompile/memory_profile.h"
#include "model/passes/deepcompile/plan_steps.h"
#include "model/passes/deepcompile/selective_gather.h"
#include "model/passes/deepcompile/state_moves.h"
#include "model/passes/pass_list.h"

namespace dcsim {
namespace {

/// In the order of DeepSpeedVersion.
constexpr std::array<std::string_view, 3> kPolicies = {"deepcompile-0.17.1", "deepcompile-0.19.6",
                                                       "deepcompile-0.19.8"};
constexpr double kSchedulerMargin = 0.1;  // SCHEDULER_MEMORY_MARGIN

DeepSpeedVersion VersionOf(const std::string& policy) {
  const auto found = std::find(kPolicies.begin(), kPolicies.end(), policy);
  return static_cast<DeepSpeedVersion>(found - kPolicies.begin());
}

/// DeepSpeed's profiler times calls that look alike once: all get the time of the first.
std::vector<Duration> ShareTimes(const Graph& graph, const std::vector<Duration>& measured) {
  std::map<std::string, Duration> first;
  std::vector<Duration> times;
  const auto describe = [&](ValueId id) {
    std::string text = "|";
    if (!id.is_none()) {
      text += std::to_string(static_cast<int>(graph.value(id).dtype));
      for (const std::int64_t length : graph.value(id).shape) {
        text += "," + std::to_string(length);
      }
    }
    return text;
  };
  for (std::size_t i = 0; i < measured.size(); ++i) {
    std::string key(graph.target(OpId(i)));
    for (const ValueId value : graph.ops[i].inputs) {
      key += describe(value);
    }
    for (const ValueId value : graph.ops[i].outputs) {
      key += describe(value);
    }
    times.push_back(first.emplace(key, measured[i]).first->second);
  }
  return times;
}

MemoryProfile::Residents ResidentsOf(const PlanSpec& spec) {
  return {!RunsPass(spec, "offload_parameters"), spec.options.training};
}

/// Runs the passes of ZeRO-3 over all graphs of a step.
class Zero3Passes {
 public:
  Zero3Passes(const PlanSpec& spec, const Graph& graph, int ranks, const PolicyInputs& inputs)
      : spec_(spec),
        graph_(graph),
        ranks_(ranks),
        inputs_(inputs),
        version_(VersionOf(spec.policy)),
        memory_(graph, inputs, ranks, ResidentsOf(spec)),
        moves_(spec, graph, ranks, inputs),
        predictor_(PredictorOf(inputs.gather_times)) {
    times_.ops = ShareTimes(graph, inputs.op_times);
    for (std::size_t i = 0; inputs.complete() && i < graph.params.size(); ++i) {
      times_.gathers.push_back(TimeOfGather(ParamId(i)));
    }
  }

  Plan Run() {
    Plan plan;
    plan.policy = spec_.policy;
    plan.ranks = ranks_;
    plan.options = spec_.options;
    std::vector<ScheduledGraph> graphs;
    std::vector<std::vector<StateMove>> state_moves;
    for (std::size_t g = 0; g < graph_.graphs.size(); ++g) {
      const PassGraph nodes = BuildPassGraph(graph_, g, ranks_, times_);
      const auto steps = ScheduleGraph(g, nodes);
      const auto peaks = PeaksOf(g, nodes, steps);
      for (const Bytes peak : peaks) {
        highest_peak_ = std::max(highest_peak_, peak);
      }
      AddCandidates(nodes);
      state_moves.push_back(moves_.Plan(g, nodes, steps, peaks));
      graphs.push_back({nodes, steps});
    }
    const auto moves = PlanActivations(spec_, graph_, inputs_, memory_, graphs, version_);
    for (std::size_t g = 0; g < graphs.size(); ++g) {
      plan.graphs.push_back(PlanSteps(graph_, graphs[g].nodes, graphs[g].steps, moves[g]));
      plan.graphs.back().state_moves = std::move(state_moves[g]);
    }
    if (RunsPass(spec_, "selective_gather") && inputs_.complete()) {
      plan.persistent = Keep();
    }
    if (graph_.compiled) {
      LowerByInductor(plan);
    }
    return plan;
  }

 private:
  Duration TimeOfGather(ParamId id) const {
    if (spec_.gather_times == GatherTimes::kDeepSpeed) {
      return inputs_.gather_call;
    }
    const double seconds = predictor_(GatheredBytes(graph_, id, ranks_).count());
    return WholeNs(seconds * 1e9);
  }

  /// 0.19.8: what gathered parameters may take (zero3_compile.py,
  /// _scheduler_budget_from_operator_profile). Nothing where it limits nothing.
  std::optional<Bytes> Budget(std::size_t g, const PassGraph& nodes) const {
    Bytes largest;
    Bytes all;
    for (const PassNode& node : nodes.nodes) {
      if (node.kind == PassNodeKind::kGather) {
        largest = std::max(largest, node.allocated_bytes);
        all += node.allocated_bytes;
      }
    }
    if (version_ < DeepSpeedVersion::kRelease0198 || largest == Bytes(0)) {
      return std::nullopt;
    }
    if (!inputs_.complete()) {
      return largest;
    }
    const auto device = static_cast<double>(inputs_.device_memory.count());
    const Bytes margin(static_cast<std::int64_t>(device * kSchedulerMargin));
    const Bytes peak = memory_.OperatorPeak(g, nodes) - moves_.away();
    const Bytes left = inputs_.device_memory - peak - margin;
    const Bytes budget = std::max(left, largest);
    return budget >= all ? std::nullopt : std::optional(budget);
  }

  std::vector<PassStep> ScheduleGraph(std::size_t g, const PassGraph& nodes) const {
    const auto order = ScheduleGathers(nodes, version_, Budget(g, nodes)).order;
    std::vector<PassStep> steps;
    steps.reserve(order.size());
    for (const std::uint32_t node : order) {
      steps.push_back({node, {}});
    }
    if (!RunsPass(spec_, "prefetch") || !inputs_.complete()) {
      return steps;
    }
    PrefetchInputs prefetch;
    prefetch.device_memory = inputs_.device_memory;
    prefetch.peaks = PeaksOf(g, nodes, steps);
    prefetch.gather_seconds = predictor_;
    return PrefetchGathers(nodes, order, prefetch);
  }

  /// By step: what DeepSpeed's profiler sees, without the states that are on the host then.
  std::vector<Bytes> PeaksOf(std::size_t g,
                             const PassGraph& nodes,
                             const std::vector<PassStep>& steps) const {
    auto peaks = memory_.Peaks(g, nodes, steps);
    for (Bytes& peak : peaks) {
      peak -= moves_.away();
    }
    return peaks;
  }

  void AddCandidates(const PassGraph& nodes) {
    for (const PassNode& node : nodes.nodes) {
      if (node.kind != PassNodeKind::kGather) {
        continue;
      }
      const auto known =
          std::find_if(candidates_.begin(), candidates_.end(),
                       [&](const KeepCandidate& each) { return each.param == node.param; });
      if (known == candidates_.end()) {
        const Value& whole = graph_.value(graph_.param(node.param).value);
        candidates_.push_back({node.param, node.time, whole.bytes()});
      } else {
        known->time += node.time;
      }
    }
  }

  /// Inductor lowers what the passes have made, in an order of its own.
  void LowerByInductor(Plan& plan) const {
    const bool prefetched = RunsPass(spec_, "prefetch") && inputs_.complete();
    std::vector<std::vector<std::vector<ParamId>>> late;  // by graph
    for (std::size_t g = 0; g < plan.graphs.size(); ++g) {
      LoweredGraph lowered =
          TakeInductorOrder(graph_, g, plan.graphs[g], spec_.gather_order, prefetched);
      plan.graphs[g] = std::move(lowered.plan);
      late.push_back(std::move(lowered.late));
      if (graph_.graphs[g].direction == Direction::kBackward) {
        GatherLate(late[graph_.graphs[g].forward.index()], plan.persistent, plan.graphs[g]);
      }
    }
  }

  /// The backward graph that DeepSpeed compiles last: of the first forward graph.
  std::size_t LastBackward() const {
    std::size_t last = 0;
    for (std::size_t g = 0; g < graph_.graphs.size(); ++g) {
      last = graph_.graphs[g].direction == Direction::kBackward ? g : last;
    }
    return last;
  }

  std::vector<ParamId> Keep() const {
    const bool has_backward = std::any_of(
        graph_.graphs.begin(), graph_.graphs.end(),
        [](const Subgraph& subgraph) { return subgraph.direction == Direction::kBackward; });
    if (!has_backward) {
      return {};
    }
    const KeepMemory memory{inputs_.device_memory, highest_peak_,
                            inputs_.device_memory - memory_.Before(LastBackward())};
    auto kept = SelectKept(candidates_, memory, version_);
    std::sort(kept.begin(), kept.end());
    return kept;
  }

  const PlanSpec& spec_;
  const Graph& graph_;
  int ranks_;
  const PolicyInputs& inputs_;
  DeepSpeedVersion version_;
  MemoryProfile memory_;
  StateMovePlanner moves_;
  GatherPredictor predictor_;
  PassTimes times_;
  Bytes highest_peak_;
  std::vector<KeepCandidate> candidates_;  // in the order of the forward graphs' parameters
};

Plan ResolveRecordedOrder(const PlanSpec& spec, const Graph& graph, int ranks) {
  Plan plan;
  plan.policy = spec.policy;
  plan.ranks = ranks;
  plan.options = spec.options;
  for (const Subgraph& subgraph : graph.graphs) {
    GraphPlan decisions;
    for (std::size_t i = 0; i < subgraph.op_count; ++i) {
      decisions.order.emplace_back(subgraph.first_op + i);
    }
    plan.graphs.push_back(std::move(decisions));
  }
  return plan;
}

}  // namespace

std::span<const std::string_view> DeepCompilePolicies() {
  return kPolicies;
}

bool IsDeepCompile(std::string_view policy) {
  return std::find(kPolicies.begin(), kPolicies.end(), policy) != kPolicies.end();
}

Plan ResolveDeepCompile(const PlanSpec& spec,
                        const Graph& graph,
                        int ranks,
                        const PolicyInputs& inputs) {
  if (spec.options.stage != 3) {
    return ResolveRecordedOrder(spec, graph, ranks);
  }
  // Since PR #7588 insertion fuses casts, and prefetch undoes it.
  const bool inserts_fused = VersionOf(spec.policy) >= DeepSpeedVersion::kRelease0196;
  ScheduleOptions inserted = spec.options;
  inserted.fuse_casts = inserted.fuse_casts || inserts_fused;
  const PlannedGraph planned(graph, inserted);
  Plan plan = Zero3Passes(spec, planned.get(), ranks, inputs).Run();
  plan.options.fuse_casts =
      spec.options.fuse_casts || (inserts_fused && !RunsPass(spec, "prefetch"));
  return plan;
}

}  // namespace dcsim
