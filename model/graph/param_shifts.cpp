#include "model/graph/param_shifts.h"

#include "model/graph/param_layout.h"
#include "model/graph/sharding.h"

namespace dcsim {

ParamShifts::ParamShifts(const Graph& graph, const ScheduleOptions& options, int ranks)
    : graph_(graph),
      begins_(graph.storages.size()) {
  if (options.stage == 3) {
    return;
  }
  const ParamLayout layout(graph, options, ranks);
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    const StorageId storage = graph.storage_of(graph.param(ParamId(i)).value);
    begins_[storage.index()] = layout.place(ParamId(i)).weights;
  }
}

std::int64_t ParamShifts::Of(ValueId value) const {
  if (value.is_none()) {
    return 0;
  }
  const std::int64_t begin = begins_[graph_.storage_of(value).index()];
  return begin * ElementBytes(graph_.value(value).dtype) % kTensorAlignment;
}

std::int64_t ParamShifts::AlignmentOf(OpId id) const {
  std::int64_t alignment = kTensorAlignment;
  for (const ValueId input : graph_.op(id).inputs) {
    while (Of(input) % alignment != 0) {
      alignment /= 2;
    }
  }
  return alignment;
}

std::vector<bool> ShiftedShards(const Graph& graph, const ScheduleOptions& options, int ranks) {
  std::vector<bool> shifted(graph.params.size());
  if (options.stage != 3 || options.sharding == Sharding::kFsdp2) {
    return shifted;
  }
  const ParamLayout layout(graph, options, ranks);
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    const ParamId id(i);
    const std::int64_t element = ElementBytes(graph.value(graph.param(id).value).dtype);
    shifted[i] = layout.place(id).weights * element % kTensorAlignment != 0;
  }
  return shifted;
}

}  // namespace dcsim
