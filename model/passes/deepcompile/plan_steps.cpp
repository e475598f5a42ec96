#include "model/passes/deepcompile/plan_steps.h"

#include <algorithm>

#include "model/graph/step_facts.h"

namespace dcsim {
namespace {

/// Collects ops and events of one graph.
class StepPlanner {
 public:
  StepPlanner(const Graph& graph, const PassGraph& nodes)
      : nodes_(nodes),
        releases_(graph.params.size()) {}

  void Add(const PassStep& step) {
    if (!step.gathers.empty()) {
      std::vector<ParamId> params;
      for (const std::uint32_t gather : step.gathers) {
        params.push_back(nodes_.nodes[gather].param);
      }
      AddEvent(GraphEventKind::kGather, params);
      return;
    }
    AddNode(nodes_.nodes[step.node]);
  }

  void Move(const ActivationStep& move) {
    plan_.events.push_back({move.kind, plan_.order.size(), {}, {nodes_.nodes[move.node].value}});
  }

  GraphPlan Finish() { return std::move(plan_); }

 private:
  void AddEvent(GraphEventKind kind, const std::vector<ParamId>& params) {
    plan_.events.push_back({kind, plan_.order.size(), params});
  }

  void AddNode(const PassNode& node) {
    switch (node.kind) {
      case PassNodeKind::kOp:
        plan_.order.push_back(node.op);
        return;
      case PassNodeKind::kGather:
        return AddEvent(GraphEventKind::kGather, {node.param});
      case PassNodeKind::kWait:
        return AddEvent(GraphEventKind::kWait, {node.param});
      case PassNodeKind::kReduce:
        return AddEvent(GraphEventKind::kReduce, {node.param});
      case PassNodeKind::kRelease:
        if (++releases_[node.param.index()] == node.uses) {
          AddEvent(GraphEventKind::kRelease, {node.param});
        }
        return;
      default:
        return;
    }
  }

  const PassGraph& nodes_;
  std::vector<int> releases_;  // by param
  GraphPlan plan_;
};

/// Releases wait for views that nobody computes with, which DeepCompile does not count as uses; a
/// parameter with no other uses is released behind them. Activations wait for the last use of their
/// storage before they leave, where DeepSpeed looks at uses of the tensor itself.
void KeepForViews(const Graph& graph, GraphPlan& plan) {
  const auto uses = FindUses(graph, plan.order);
  const auto behind_storage = [&](ValueId value) {
    return uses[graph.storage_of(value).index()].last + 1;
  };
  const auto behind = [&](ParamId id) { return behind_storage(graph.param(id).value); };
  std::vector<bool> released(graph.params.size());
  for (GraphEvent& event : plan.events) {
    if (event.kind == GraphEventKind::kOffloadActivation) {
      event.position = std::max(event.position, behind_storage(event.values.front()));
    }
    if (event.kind == GraphEventKind::kRelease) {
      event.position = std::max(event.position, behind(event.params.front()));
      released[event.params.front().index()] = true;
    }
  }
  std::vector<GraphEvent> missing;
  for (const GraphEvent& event : plan.events) {
    if (event.kind == GraphEventKind::kWait && !released[event.params.front().index()]) {
      missing.push_back({GraphEventKind::kRelease, behind(event.params.front()), event.params});
    }
  }
  plan.events.insert(plan.events.end(), missing.begin(), missing.end());
  std::stable_sort(
      plan.events.begin(), plan.events.end(),
      [](const GraphEvent& a, const GraphEvent& b) { return a.position < b.position; });
}

}  // namespace

GraphPlan PlanSteps(const Graph& graph,
                    const PassGraph& nodes,
                    const std::vector<PassStep>& steps,
                    const std::vector<ActivationStep>& moves) {
  StepPlanner planner(graph, nodes);
  auto move = moves.begin();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (; move != moves.end() && move->before == i; ++move) {
      planner.Move(*move);
    }
    planner.Add(steps[i]);
  }
  GraphPlan plan = planner.Finish();
  KeepForViews(graph, plan);
  return plan;
}

}  // namespace dcsim
