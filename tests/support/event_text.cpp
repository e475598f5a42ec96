#include "tests/support/event_text.h"

namespace dcsim {

std::string EventText(const Graph& graph, const GraphPlan& plan) {
  std::string text;
  std::size_t position = 0;
  for (const GraphEvent& event : plan.events) {
    text.append(event.position - position, '|');
    position = event.position;
    text += "GWFR"[static_cast<std::size_t>(event.kind)];
    for (const ParamId id : event.params) {
      text += graph.param(id).name + (id == event.params.back() ? " " : ",");
    }
  }
  return text + std::string(plan.order.size() - position, '|');
}

}  // namespace dcsim
