#include "model/passes/plain_policy.h"

#include <algorithm>

#include "model/graph/step_facts.h"

namespace dcsim {
namespace {

/// Parameters in use, by first use; ties by id.
std::vector<std::pair<std::size_t, ParamId>> ParamsByFirstUse(const Graph& graph,
                                                              const std::vector<OpId>& order) {
  const auto uses = FindUses(graph, order);
  std::vector<std::pair<std::size_t, ParamId>> params;
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    const UseSpan& span = uses[graph.storage_of(graph.params[i].value).index()];
    if (span.used) {
      params.emplace_back(span.first, ParamId(i));
    }
  }
  std::sort(params.begin(), params.end());
  return params;
}

}  // namespace

Plan ResolvePlain(const PlanSpec& spec, const Graph& graph, int ranks) {
  Plan plan;
  plan.policy = spec.policy;
  plan.ranks = ranks;
  plan.options = spec.options;
  for (const Subgraph& subgraph : graph.graphs) {
    GraphPlan decisions;
    for (std::size_t i = 0; i < subgraph.op_count; ++i) {
      decisions.order.emplace_back(subgraph.first_op + i);
    }
    if (spec.options.stage == 3) {
      for (const auto& [position, param] : ParamsByFirstUse(graph, decisions.order)) {
        decisions.gathers.push_back({position, {param}});
      }
    }
    plan.graphs.push_back(std::move(decisions));
  }
  return plan;
}

}  // namespace dcsim
