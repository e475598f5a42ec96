#include "sim/analysis/shifted_params.h"

#include "model/graph/sharding.h"

namespace dcsim {

std::optional<ShiftedParams> FindShiftedParams(const Plan& plan, const Graph& graph) {
  if (plan.options.align_tensors) {
    return std::nullopt;
  }
  ShiftedParams found;
  for (const FlatGroup& group : LaidOutGroups(graph, plan.options, plan.ranks)) {
    const auto offsets = WeightOffsets(graph, group, plan.options, plan.ranks);
    const auto is_odd = [&group](std::int64_t elements) {
      return elements * ElementBytes(group.dtype) % kTensorAlignment != 0;
    };
    for (std::size_t i = 0; i < group.params.size(); ++i) {
      const ParamId id = group.params[i];
      if (is_odd(WeightElements(graph, id, plan.options, plan.ranks))) {
        found.first = found.odd == 0 ? id : found.first;
        ++found.odd;
      }
      found.shifted += is_odd(offsets[i]) ? 1U : 0U;
    }
  }
  return found.shifted > 0 && found.odd > 0 ? std::optional(found) : std::nullopt;
}

}  // namespace dcsim
