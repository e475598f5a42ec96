#pragma once

#include <vector>

#include "model/ir/schedule.h"
#include "model/ir/timeline.h"

namespace dcsim {

/// A piece of the critical path: a task on its stream, or a stretch of the host's work that ends
/// with the issue of the task after it.
struct CriticalPiece {
  TaskId task;  // the last one, of a stretch on the host
  bool on_host = false;
  SimTime start;
  SimTime end;
};

/// The chain of causes that ends with the last task of the step, first piece first: each piece ends
/// when the next one starts, because the next one waited for it (Span::blocker). Where the host was
/// the cause, its work since it last waited for the GPU is one piece. What began before the step is
/// cut off at 0.
std::vector<CriticalPiece> FindStepCriticalPath(const Timeline& timeline, const Schedule& schedule);

}  // namespace dcsim
