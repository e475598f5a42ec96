#include "model/passes/resolve.h"

#include <algorithm>
#include <array>

#include "model/base/error.h"
#include "model/base/text.h"
#include "model/graph/fused_casts.h"
#include "model/graph/sharding.h"
#include "model/graph/step_facts.h"
#include "model/passes/check_activations.h"
#include "model/passes/check_events.h"
#include "model/passes/check_state_moves.h"
#include "model/passes/deepcompile/deepcompile_policy.h"
#include "model/passes/eager_policy.h"
#include "model/passes/fsdp_policy.h"
#include "model/passes/gather_passes.h"
#include "model/passes/offload_optimizer.h"
#include "model/passes/offload_parameters.h"
#include "model/passes/pass_list.h"
#include "model/passes/plain_policy.h"

namespace dcsim {
namespace {

constexpr std::array<std::string_view, 6> kPolicyNames = {
    "plain-1", "deepcompile-0.17.1", "deepcompile-0.19.6", "deepcompile-0.19.8", "deepspeed-eager",
    "fsdp"};
constexpr std::string_view kPlainPolicy = kPolicyNames.front();
constexpr std::string_view kEagerPolicy = "deepspeed-eager";
constexpr std::string_view kFsdpPolicy = "fsdp";

/// Keys of the spec that another policy or stage understands than its own; each with the reason.
std::string FindMisplacedKey(const PlanSpec& spec) {
  const bool plain = spec.policy == kPlainPolicy;
  const bool eager = spec.policy == kEagerPolicy;
  const bool fsdp = spec.policy == kFsdpPolicy;
  const bool keeps = spec.keep_gathered != KeepGathered();
  const std::string stage = std::to_string(spec.options.stage);
  if (!plain && !spec.passes && (keeps || spec.gather_ahead != 0)) {
    return "gather_ahead and keep_gathered are for plain-1; " + spec.policy +
           " decides both itself";
  }
  if ((eager || fsdp) && spec.passes) {
    return "passes are for plain-1 and DeepCompile's policies, not " + spec.policy;
  }
  if (!fsdp && spec.fsdp_groups != FsdpGroups()) {
    return "reshard_after_forward and wrap are for fsdp, not " + spec.policy;
  }
  if (fsdp != (spec.options.sharding == Sharding::kFsdp2)) {
    return "sharding: fsdp2 is for fsdp, which has it by default, and for no other policy";
  }
  if (!IsDeepCompile(spec.policy) && spec.gather_times != GatherTimes::kDeepSpeed) {
    return "gather_times is for DeepCompile's policies, not " + spec.policy;
  }
  if (!eager && spec.eager_gathers != EagerGathers()) {
    return "prefetch_bucket, persistence_threshold, max_live and max_reuse_distance are for "
           "deepspeed-eager, not " +
           spec.policy;
  }
  if (spec.options.stage != 3 && (keeps || spec.gather_ahead != 0)) {
    return "gather_ahead and keep_gathered are for stage 3; stage " + stage +
           " gathers no parameter before its use";
  }
  if (spec.options.stage != 3 && spec.gather_times != GatherTimes::kDeepSpeed) {
    return "gather_times is for stage 3; stage " + stage + " gathers no parameter before its use";
  }
  return {};
}

/// What a release of DeepSpeed cannot run.
std::string FindReleaseFault(const PlanSpec& spec) {
  const TrainingOptions& training = spec.options.training;
  if (spec.options.parameter_alignment && IsDeepCompile(spec.policy) &&
      spec.policy != "deepcompile-0.19.8") {
    return "parameter_alignment: DeepSpeed has it since 0.19.8, not in " + spec.policy;
  }
  if (spec.policy != "deepcompile-0.17.1") {
    return {};
  }
  if (spec.options.stage == 2) {
    return "stage: DeepCompile of DeepSpeed 0.17.1 knows ZeRO-1 and 3; it leaves ZeRO-2 to "
           "torch.compile";
  }
  if (training.accumulation || training.master != DType::kFloat32) {
    return "gradient_accumulation_dtype and master_weights: DeepCompile of DeepSpeed 0.17.1 keeps "
           "gradients in the parameters' dtype and master weights in float32";
  }
  for (const std::string& pass : PassesOf(spec)) {
    if (pass.starts_with("offload_activation") || pass.starts_with("offload_adam_states")) {
      return pass +
             ": DeepSpeed 0.17.1 has no key for it, and its pass differs from the one here; "
             "deepcompile-0.19.6 and deepcompile-0.19.8 have it";
    }
  }
  return {};
}

/// What a policy's own reductions exclude.
std::string FindReductionFault(const PlanSpec& spec) {
  const bool eager_buckets = spec.options.gradient_buckets == GradientBuckets::kEager;
  if (IsDeepCompile(spec.policy) &&
      (eager_buckets || spec.options.gradient_reduction == GradientReduction::kCoalesced)) {
    return "gradient_reduction and gradient_buckets: DeepCompile's graphs reduce in each backward, "
           "in its own buckets; coalesced and eager are for plain-1 and deepspeed-eager";
  }
  if (spec.policy == kEagerPolicy && !eager_buckets) {
    return "gradient_buckets: deepspeed-eager has eager ones";
  }
  return {};
}

/// What compiled graphs exclude, and what only they have. An activation that leaves would take
/// memory along that Inductor uses again.
std::string FindCompiledFault(const PlanSpec& spec) {
  const bool compiled = spec.options.backend == Backend::kInductor;
  if (spec.gather_order != GatherOrder::kInductor211 &&
      !(compiled && IsDeepCompile(spec.policy) && spec.options.stage == 3)) {
    return "gather_order is for DeepCompile's policies with stage 3 and backend inductor";
  }
  const std::vector<std::string> passes = PassesOf(spec);
  const bool moves = std::any_of(passes.begin(), passes.end(), [](const std::string& pass) {
    return pass.starts_with("offload_activation");
  });
  return moves && compiled
             ? "offload_activation: not for backend inductor, whose graphs use the memory of "
               "activations again; backend aten has it"
             : "";
}

/// DeepSpeed's passes over states know Adam's and Lion's names of them.
std::string FindStatePassFault(const PlanSpec& spec) {
  if (spec.options.training.algorithm != OptimizerAlgorithm::kSgdMomentum) {
    return {};
  }
  for (const std::string& pass : PassesOf(spec)) {
    if (pass.starts_with("offload_adam_states")) {
      return pass + ": DeepSpeed moves exp_avg, exp_avg_sq and hp_param; the momentum of " +
             "sgd-momentum has another name and would stay";
    }
  }
  return {};
}

void RejectContradictions(const PlanSpec& spec, const Graph& graph) {
  std::vector<std::string> faults = FindOptionFaults(spec.options);
  faults.push_back(FindMisplacedKey(spec));
  faults.push_back(FindPassFault(spec));
  faults.push_back(FindReleaseFault(spec));
  faults.push_back(FindReductionFault(spec));
  faults.push_back(FindCompiledFault(spec));
  faults.push_back(FindStatePassFault(spec));
  faults.push_back(FindParamFault(spec.options, graph));
  for (const std::string& fault : faults) {
    if (!fault.empty()) {
      throw Error("plan: " + fault);
    }
  }
}

/// A compiled form is for the stages that it was lowered for, and its ops share memory in the order
/// of their lowering: nothing may move.
std::string FindBackendFault(const Plan& plan, const Graph& graph) {
  if (plan.options.backend != graph.backend()) {
    const auto name = [](Backend backend) {
      return std::string(BackendNames()[static_cast<std::size_t>(backend)]);
    };
    return "backend: the plan is for " + name(plan.options.backend) + ", the graph is of " +
           name(graph.backend());
  }
  if (!graph.compiled) {
    return {};
  }
  const bool fsdp = plan.options.sharding == Sharding::kFsdp2;
  if (graph.compiled->stages.empty() != fsdp) {
    return fsdp
               ? "backend: the graph was lowered whole for ZeRO, where users of FSDP2 compile each "
                 "layer on its own; dcrecord --backend inductor-layers records that"
               : "backend: the graph's layers were lowered on their own, for fsdp; dcrecord "
                 "--backend inductor records it for ZeRO";
  }
  const std::vector<int>& stages = graph.compiled->stages;
  if (!fsdp && std::find(stages.begin(), stages.end(), plan.options.stage) == stages.end()) {
    return "backend: the graph was lowered for another stage than " +
           std::to_string(plan.options.stage);
  }
  for (const GraphPlan& decisions : plan.graphs) {
    if (!std::is_sorted(decisions.order.begin(), decisions.order.end())) {
      return "backend: " + plan.policy +
             " moves ops, which a compiled graph does not allow: they use memory again in the "
             "order in which they were lowered";
    }
  }
  return {};
}

std::string OpName(const Graph& graph, OpId id) {
  return "op " + std::to_string(id.index()) + " (" + std::string(graph.target(id)) + ")";
}

/// Each op of the graph once, after the ops whose values it uses.
void CheckOrder(const Graph& graph,
                std::size_t g,
                const std::vector<OpId>& order,
                std::vector<std::string>& faults) {
  const Subgraph& subgraph = graph.graphs[g];
  std::vector<std::size_t> position(subgraph.op_count, order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t local = order[i].index() - subgraph.first_op;
    if (order[i].index() < subgraph.first_op || local >= subgraph.op_count) {
      faults.push_back("graph " + std::to_string(g) + ": op " + std::to_string(order[i].index()) +
                       " belongs to another graph");
      return;
    }
    if (position[local] != order.size()) {
      faults.push_back(OpName(graph, order[i]) + " stands twice in the order");
    }
    position[local] = i;
  }
  std::vector<std::size_t> produced(graph.values.size(), 0);
  for (std::size_t local = 0; local < subgraph.op_count; ++local) {
    for (const ValueId output : graph.ops[subgraph.first_op + local].outputs) {
      if (!output.is_none()) {
        produced[output.index()] = position[local] + 1;
      }
    }
  }
  for (std::size_t local = 0; local < subgraph.op_count; ++local) {
    const OpId id(subgraph.first_op + local);
    if (position[local] == order.size()) {
      faults.push_back(OpName(graph, id) + " is not in the order");
      continue;
    }
    for (const ValueId input : graph.op(id).inputs) {
      if (produced[input.index()] > position[local]) {
        faults.push_back(OpName(graph, id) + " stands before the op that makes its input " +
                         graph.value(input).name);
      }
    }
  }
}

/// What is wrong with the gather of one parameter at `position`, if anything.
void CheckGather(const Graph& graph,
                 ParamId id,
                 std::size_t position,
                 const std::vector<UseSpan>& uses,
                 std::vector<std::string>& faults) {
  const UseSpan& span = uses[graph.storage_of(graph.param(id).value).index()];
  const std::string& name = graph.param(id).name;
  if (!span.used) {
    faults.push_back("gather of " + name + ", which the graph does not use");
  } else if (position > span.first) {
    faults.push_back("gather of " + name + " after its first use");
  }
}

/// Every parameter in use is gathered once, at a position that exists.
void CheckGathers(const Graph& graph,
                  const GraphPlan& decisions,
                  std::vector<std::string>& faults) {
  const auto uses = FindUses(graph, decisions.order);
  std::vector<int> gathered(graph.params.size());
  std::size_t before = 0;
  for (const GatherGroup& group : decisions.gathers) {
    if (group.position < before || group.position > decisions.order.size()) {
      faults.push_back("gather positions must ascend and stay within the graph, found " +
                       std::to_string(group.position));
    }
    before = std::max(before, group.position);
    for (const ParamId id : group.params) {
      CheckGather(graph, id, group.position, uses, faults);
      if (++gathered[id.index()] == 2) {
        faults.push_back("a second gather of " + graph.param(id).name + " in one graph");
      }
    }
  }
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    if (uses[graph.storage_of(graph.params[i].value).index()].used && gathered[i] == 0) {
      faults.push_back(graph.params[i].name + " is used and not gathered");
    }
  }
}

/// The plan without passes that work on any policy's.
Plan ResolvePolicy(const PlanSpec& spec,
                   const Graph& graph,
                   int ranks,
                   const PolicyInputs& inputs) {
  if (IsDeepCompile(spec.policy)) {
    return ResolveDeepCompile(spec, graph, ranks, inputs);
  }
  const PlannedGraph planned(graph, spec.options);
  if (spec.policy == kFsdpPolicy) {
    return ResolveFsdp(spec, planned.get(), ranks);
  }
  return spec.policy == kEagerPolicy ? ResolveEager(spec, planned.get(), ranks)
                                     : ResolvePlain(spec, planned.get(), ranks);
}

/// Those passes; the others are the policy's own.
void RunPass(const std::string& pass,
             const PlanSpec& spec,
             const Graph& graph,
             const PolicyInputs& inputs,
             Plan& plan) {
  if (pass == "gather_ahead") {
    GatherAhead(graph, spec.gather_ahead, plan);
  } else if (pass == "overlap_gathers") {
    OverlapGathers(graph, plan.ranks, inputs, plan);
  } else if (pass == "fuse_gathers") {
    FuseGathers(graph, plan.ranks, spec.max_fuse_size, plan);
  } else if (pass == "keep_gathered") {
    KeepParameters(graph, spec.keep_gathered, plan);
  } else if (pass == "offload_optimizer") {
    OffloadStates(graph, spec.offload_optimizer, plan);
  } else if (pass == "offload_parameters") {
    OffloadParameters(graph, plan);
  }
}

}  // namespace

std::span<const std::string_view> PolicyNames() {
  return kPolicyNames;
}

Plan Resolve(const PlanSpec& spec, const Graph& recorded, int ranks, const PolicyInputs& inputs) {
  if (std::find(kPolicyNames.begin(), kPolicyNames.end(), spec.policy) == kPolicyNames.end()) {
    throw Error("plan: policy: expected " + JoinAlternatives(kPolicyNames) + ", found '" +
                spec.policy + "'" + DidYouMean(spec.policy, kPolicyNames));
  }
  RejectContradictions(spec, recorded);
  Plan plan = ResolvePolicy(spec, recorded, ranks, inputs);
  const PlannedGraph planned(recorded, plan.options);
  const Graph& graph = planned.get();
  for (const std::string& pass : PassesOf(spec)) {
    RunPass(pass, spec, graph, inputs, plan);
  }
  if (const std::string fault = FindBackendFault(plan, graph); !fault.empty()) {
    throw Error("plan: " + fault);
  }
  return plan;
}

bool UsesMeasurements(const PlanSpec& spec) {
  return (IsDeepCompile(spec.policy) && spec.options.stage == 3) ||
         RunsPass(spec, "overlap_gathers");
}

std::vector<std::string> FindPlanFaults(const Plan& plan, const Graph& recorded) {
  std::vector<std::string> faults = FindOptionFaults(plan.options);
  if (std::string fault = FindParamFault(plan.options, recorded); !fault.empty()) {
    faults.push_back(std::move(fault));
  }
  const PlannedGraph planned(recorded, plan.options);
  const Graph& graph = planned.get();
  if (std::string fault = FindBackendFault(plan, graph); !fault.empty()) {
    faults.push_back(std::move(fault));
  }
  if (plan.graphs.size() != graph.graphs.size()) {
    faults.push_back("the plan is for " + std::to_string(plan.graphs.size()) +
                     " graphs, the workload has " + std::to_string(graph.graphs.size()));
    return faults;
  }
  for (std::size_t g = 0; g < plan.graphs.size(); ++g) {
    CheckOrder(graph, g, plan.graphs[g].order, faults);
    const bool plans_events = !plan.graphs[g].events.empty();
    if (plan.options.stage != 3 && (plans_events || !plan.graphs[g].gathers.empty())) {
      faults.push_back("graph " + std::to_string(g) + ": gathers are for stage 3");
    } else if (faults.empty() && plans_events) {
      CheckEvents(graph, g, plan.options.sharding, plan.graphs[g], faults);
    } else if (faults.empty() && plan.options.stage == 3) {
      CheckGathers(graph, plan.graphs[g], faults);
    }
  }
  CheckStateMoves(plan, graph, faults);
  if (faults.empty()) {
    CheckActivations(plan, graph, faults);
  }
  return faults;
}

}  // namespace dcsim
