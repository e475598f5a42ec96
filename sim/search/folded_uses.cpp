#include "model/graph/step_facts.h"
#include "sim/search/folded_program.h"

namespace dcsim {

std::vector<FoldedUse> FindFoldedUses(const Graph& graph, const std::vector<OpId>& order) {
  const auto uses = FindUses(graph, order);
  std::vector<FoldedUse> found;
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    const UseSpan& span = uses[graph.storage_of(graph.params[i].value).index()];
    if (span.used) {
      found.push_back({ParamId(i), static_cast<std::uint32_t>(span.first),
                       static_cast<std::uint32_t>(span.last)});
    }
  }
  return found;
}

}  // namespace dcsim
