#pragma once

#include <cstdint>
#include <vector>

#include "model/ir/schedule.h"

namespace dcsim {

/// What a rank keeps of one parameter under FSDP2, each a tensor of its own.
struct FsdpShard {
  BufferId weights;  // in the dtype of master weights, which are what is gathered
  BufferId first_moment;
  BufferId second_moment;
  BufferId step_count;
};

/// A group on its way from shards to whole parameters.
struct GroupGather {
  std::vector<ParamId> params;
  BufferId output;  // that ranks gather into; None() on one rank
  TaskId gather;
  std::uint32_t collective = 0;
};

/// Reduced gradients of a group on this rank, one behind the other in one tensor.
struct GroupGradient {
  std::vector<ParamId> params;
  BufferId buffer;
};

/// Everything that changes while a schedule of FSDP2 is spelled out.
struct FsdpState {
  std::vector<FsdpShard> shards;         // by param
  std::vector<GroupGather> gathers;      // issued and not waited for
  BufferId copied_out;                   // what the group before this one in the forward came from
  TaskId copy_out;                       // that read it
  BufferId reduce_input;                 // of the last reduction
  TaskId reduction;                      // that reads it; None() once compute has waited for it
  std::vector<GroupGradient> gradients;  // of this optimizer step
};

}  // namespace dcsim
