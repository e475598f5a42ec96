#include "model/passes/offload_parameters.h"

#include "model/graph/step_facts.h"

namespace dcsim {
namespace {

/// Parameters that a graph gathers, in the order of its inputs.
std::vector<ParamId> GatheredInputs(const Graph& graph,
                                    const StepFacts& facts,
                                    const Subgraph& subgraph,
                                    const GraphPlan& decisions) {
  std::vector<bool> missing(graph.params.size());
  for (const GraphEvent& event : decisions.events) {
    for (const ParamId id : event.params) {
      missing[id.index()] = missing[id.index()] || event.kind == GraphEventKind::kGather;
    }
  }
  std::vector<ParamId> params;
  for (const GraphInput& input : subgraph.inputs) {
    const ParamId id = facts.param_of[graph.storage_of(input.value).index()];
    if (!id.is_none() && missing[id.index()]) {
      params.push_back(id);
      missing[id.index()] = false;
    }
  }
  return params;
}

}  // namespace

void OffloadParameters(const Graph& graph, Plan& plan) {
  plan.options.offload_parameters = true;
  const StepFacts facts = AnalyseStep(graph);
  for (std::size_t g = 0; g < plan.graphs.size(); ++g) {
    auto& events = plan.graphs[g].events;
    auto params = GatheredInputs(graph, facts, graph.graphs[g], plan.graphs[g]);
    if (!params.empty()) {
      events.insert(events.begin(), {GraphEventKind::kReloadShard, 0, std::move(params)});
    }
  }
}

}  // namespace dcsim
