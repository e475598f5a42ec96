#pragma once

#include <vector>

#include "model/ir/schedule.h"
#include "model/ir/timeline.h"

namespace dcsim {

/// Why nothing ran on the compute stream for a while.
struct ComputeStall {
  StallReason reason = StallReason::kNone;
  TaskKind blocker = TaskKind::kCompute;  // what was waited for, with reason kEvent
  Duration time;
  std::size_t stalls = 0;  // in so many pieces
};

/// The idle time of the compute stream in one step by its cause, longest first. A piece ends with
/// the start of the task that was waited for; what is idle behind the last task is kNone. Pieces
/// and the time in which kernels run there add up to the step.
std::vector<ComputeStall> FindComputeStalls(const Timeline& timeline, const Schedule& schedule);

}  // namespace dcsim
