#pragma once

#include <vector>

#include "model/ir/schedule.h"
#include "model/ir/timeline.h"

namespace dcsim {

/// One collective of a step: how long it took, and how much of that no compute hid.
struct CollectiveExposure {
  TaskId task;
  SimTime start;     // within the step; 0 when it began before
  Duration busy;     // from its start on this rank to its end
  Duration exposed;  // of it, time in which no kernel ran on the compute stream
  TaskId hidden_by;  // the op that ran beside it for longest; None() when nothing did
};

/// The collectives of a step in the order of their starts. Where several run at once without
/// compute, the time is the one's that started first, so that `exposed` adds up to the result's
/// exposed communication.
///
///   timeline   of the same schedule
std::vector<CollectiveExposure> FindExposure(const Timeline& timeline, const Schedule& schedule);

/// The sum of what is exposed, by kind of collective, in enumerator order.
std::vector<Duration> ExposedByKind(const std::vector<CollectiveExposure>& exposures,
                                    const Schedule& schedule);

}  // namespace dcsim
