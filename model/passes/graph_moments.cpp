#include "model/passes/graph_moments.h"

namespace dcsim {
namespace {

std::vector<std::vector<UseSpan>> AllUses(const Plan& plan, const Graph& graph) {
  std::vector<std::vector<UseSpan>> uses;
  for (const GraphPlan& decisions : plan.graphs) {
    uses.push_back(FindUses(graph, decisions.order));
  }
  return uses;
}

/// Storages whose memory something else than the last op decides about.
std::vector<bool> ExemptFromLastUse(const LowerState& state) {
  std::vector<bool> exempt = state.facts.is_constant;
  for (const Param& param : state.graph.params) {
    exempt[state.graph.storage_of(param.value).index()] = true;
  }
  for (const Subgraph& subgraph : state.graph.graphs) {
    for (const GraphOutput& output : subgraph.outputs) {
      if (IsHeld(output)) {
        exempt[state.graph.storage_of(output.value).index()] = true;
      }
    }
  }
  return exempt;
}

void AddGradients(const LowerState& state, std::size_t g, GraphMoments& events) {
  const GraphPlan& decisions = state.plan.graphs[g];
  std::vector<std::size_t> position(state.graph.values.size(), decisions.order.size());
  for (std::size_t i = 0; i < decisions.order.size(); ++i) {
    for (const ValueId output : state.graph.op(decisions.order[i]).outputs) {
      if (!output.is_none()) {
        position[output.index()] = i;
      }
    }
  }
  for (const GraphOutput& output : state.graph.graphs[g].outputs) {
    if (output.kind != GraphOutputKind::kGradient) {
      continue;
    }
    const std::size_t at = position[output.value.index()];
    (at == decisions.order.size() ? events.early_gradients : events.gradients[at])
        .push_back(&output);
  }
}

void AddParamEvents(const LowerState& state,
                    const std::vector<UseSpan>& uses,
                    GraphMoments& events) {
  for (std::size_t i = 0; i < state.graph.params.size(); ++i) {
    const UseSpan& span = uses[state.graph.storage_of(state.graph.params[i].value).index()];
    if (span.used) {
      events.first_uses[span.first].emplace_back(i);
      events.last_uses[span.last].emplace_back(i);
    }
  }
}

}  // namespace

std::vector<GraphMoments> FindMoments(const LowerState& state) {
  const auto uses = AllUses(state.plan, state.graph);
  const auto exempt = ExemptFromLastUse(state);
  std::vector<GraphMoments> all(state.graph.graphs.size());
  for (std::size_t g = 0; g < all.size(); ++g) {
    const std::size_t count = state.plan.graphs[g].order.size();
    all[g].first_uses.resize(count);
    all[g].last_uses.resize(count);
    all[g].dying.resize(count);
    all[g].gradients.resize(count);
    AddGradients(state, g, all[g]);
    if (state.plan.options.stage == 3) {
      AddParamEvents(state, uses[g], all[g]);
    }
  }
  for (std::size_t s = 0; s < state.graph.storages.size(); ++s) {
    for (std::size_t g = all.size(); !exempt[s] && g-- > 0;) {
      if (uses[g][s].used) {
        all[g].dying[uses[g][s].last].emplace_back(s);
        break;
      }
    }
  }
  return all;
}

}  // namespace dcsim
