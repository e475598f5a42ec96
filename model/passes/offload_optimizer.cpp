#include "model/passes/offload_optimizer.h"

#include "model/graph/sharding.h"

namespace dcsim {
namespace {

std::vector<OptimizerState> ChooseStates(const Graph& graph,
                                         const OffloadOptimizer& offload,
                                         const Plan& plan) {
  std::vector<OptimizerState> chosen;
  Bytes leaving;
  for (const StateSize& state : StatesOf(graph, plan.options, plan.ranks)) {
    if (offload.all || leaving < offload.bytes) {
      chosen.push_back(state.state);
      leaving += state.bytes;
    }
  }
  return chosen;
}

}  // namespace

void OffloadStates(const Graph& graph, const OffloadOptimizer& offload, Plan& plan) {
  const auto states = ChooseStates(graph, offload, plan);
  if (states.empty() || plan.graphs.empty()) {
    return;
  }
  plan.graphs.front().state_moves.push_back({StateMoveKind::kOffload, 0, states});
  GraphPlan& last = plan.graphs.back();
  last.state_moves.push_back({StateMoveKind::kReload, last.order.size() + 1, states});
}

}  // namespace dcsim
