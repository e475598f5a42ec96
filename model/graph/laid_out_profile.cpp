#include "model/graph/laid_out_profile.h"

#include <algorithm>

#include "model/graph/sharding.h"

namespace dcsim {

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

LaidOutOp LaidOutProfile::Find(OpId id) const {
  if (const OpProfile* shifted = FindShifted(id)) {
    return {shifted, true};
  }
  return {profile_ == nullptr ? nullptr : profile_->FindOp(id), false};
}

}  // namespace dcsim
