#include "tests/support/activation_plans.h"

#include <algorithm>

#include "model/graph/step_facts.h"
#include "model/passes/check_activations.h"

namespace dcsim {
namespace {

/// Behind the events of the same position.
void Insert(std::vector<GraphEvent>& events,
            GraphEventKind kind,
            std::size_t position,
            ValueId value) {
  const auto behind = std::find_if(events.begin(), events.end(), [&](const GraphEvent& event) {
    return event.position > position;
  });
  events.insert(behind, {kind, position, {}, {value}});
}

}  // namespace

std::size_t OffloadAllActivations(const Graph& graph, Plan& plan) {
  constexpr std::size_t kOpsAhead = 3;
  std::size_t count = 0;
  for (std::size_t b = 0; b < graph.graphs.size(); ++b) {
    if (graph.graphs[b].direction != Direction::kBackward) {
      continue;
    }
    const std::size_t f = graph.graphs[b].forward.index();
    const auto forward_uses = FindUses(graph, plan.graphs[f].order);
    const auto backward_uses = FindUses(graph, plan.graphs[b].order);
    for (const GraphOutput& output : graph.graphs[f].outputs) {
      const bool saved = output.kind == GraphOutputKind::kSaved;
      if (!saved || !MayLeave(graph, output.value, f, b) ||
          graph.value(output.value).numel() == 0) {
        continue;
      }
      const std::size_t storage = graph.storage_of(output.value).index();
      const std::size_t first = backward_uses[storage].first;
      Insert(plan.graphs[f].events, GraphEventKind::kOffloadActivation,
             forward_uses[storage].last + 1, output.value);
      Insert(plan.graphs[b].events, GraphEventKind::kReloadActivation,
             first - std::min(first, kOpsAhead), output.value);
      Insert(plan.graphs[b].events, GraphEventKind::kWaitActivation, first, output.value);
      ++count;
    }
  }
  return count;
}

}  // namespace dcsim
