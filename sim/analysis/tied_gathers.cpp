#include "sim/analysis/tied_gathers.h"

#include "model/graph/fused_casts.h"
#include "model/graph/sharding.h"

namespace dcsim {
namespace {

/// What a graph gathers before its first release; `param` is None() if nothing of it is tied.
TiedGathers CountAhead(const Plan& plan, const Graph& graph, std::size_t g) {
  TiedGathers found;
  found.graph = g;
  bool released = false;
  for (const GraphEvent& event : plan.graphs[g].events) {
    released = released || event.kind == GraphEventKind::kRelease;
    for (const ParamId id : event.params) {
      if (event.kind != GraphEventKind::kGather) {
        continue;
      }
      ++found.gathers;
      if (released) {
        continue;
      }
      ++found.ahead;
      found.bytes += GatheredBytes(graph, id, plan.ranks);
      found.param = graph.param(id).tied.empty() ? found.param : id;
    }
  }
  return found;
}

}  // namespace

std::optional<TiedGathers> FindTiedGathers(const Plan& plan, const Graph& graph) {
  const PlannedGraph planned(graph, plan.options);
  for (std::size_t g = 0; g < plan.graphs.size(); ++g) {
    const TiedGathers found = CountAhead(plan, planned.get(), g);
    if (!found.param.is_none() && found.ahead > 1 && 2 * found.ahead > found.gathers) {
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace dcsim
