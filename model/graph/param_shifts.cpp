#include "model/graph/param_shifts.h"

#include <algorithm>

#include "model/graph/sharding.h"

namespace dcsim {

ParamShifts::ParamShifts(const Graph& graph, const ScheduleOptions& options, int ranks)
    : graph_(graph),
      begins_(graph.storages.size()) {
  if (options.stage == 3) {
    return;
  }
  for (const FlatGroup& group : LaidOutGroups(graph, options, ranks)) {
    const std::vector<std::int64_t> offsets = WeightOffsets(graph, group, options, ranks);
    for (std::size_t i = 0; i < group.params.size(); ++i) {
      begins_[graph.storage_of(graph.param(group.params[i]).value).index()] = offsets[i];
    }
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

ScheduleOptions SideBySideOptions() {
  ScheduleOptions options;
  options.stage = 1;
  options.reduce_collective = ReduceCollective::kAllReduce;
  options.align_tensors = false;
  return options;
}

LaidOutProfile::LaidOutProfile(const Graph& graph,
                               const Profile* profile,
                               const ScheduleOptions& options,
                               int ranks)
    : graph_(graph),
      profile_(profile) {
  if (profile != nullptr && !profile->side_by_side.empty() && options.stage != 3) {
    shifts_.emplace(
        Shifts{ParamShifts(graph, options, ranks), ParamShifts(graph, SideBySideOptions(), 1)});
  }
}

const OpProfile* LaidOutProfile::FindShifted(OpId id) const {
  if (!shifts_ || shifts_->here.AlignmentOf(id) == kTensorAlignment) {
    return nullptr;
  }
  const std::vector<ValueId>& inputs = graph_.op(id).inputs;
  const bool alike = std::all_of(inputs.begin(), inputs.end(), [this](ValueId input) {
    return shifts_->here.Of(input) == shifts_->measured.Of(input);
  });
  return alike ? FindEntry(profile_->side_by_side, id) : nullptr;
}

const OpProfile* LaidOutProfile::Find(OpId id) const {
  const OpProfile* shifted = FindShifted(id);
  return shifted != nullptr || profile_ == nullptr ? shifted : profile_->FindOp(id);
}

}  // namespace dcsim
