#include "tests/support/event_text.h"

namespace dcsim {

std::string EventText(const GraphPlan& plan,
                      const std::function<std::string(ParamId)>& name,
                      const std::string& end) {
  std::string text;
  std::size_t position = 0;
  for (const GraphEvent& event : plan.events) {
    text.append(event.position - position, '|');
    position = event.position;
    text += "GWFR"[static_cast<std::size_t>(event.kind)];
    for (const ParamId id : event.params) {
      text += name(id) + (id == event.params.back() ? end : ",");
    }
  }
  return text + std::string(plan.order.size() - position, '|');
}

std::string EventText(const Graph& graph, const GraphPlan& plan) {
  return EventText(
      plan, [&](ParamId id) { return graph.param(id).name; }, " ");
}

}  // namespace dcsim
