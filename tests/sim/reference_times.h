#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/cost/work_cost.h"
#include "model/graph/dag.h"
#include "model/ir/schedule.h"
#include "tests/sim/step_kit.h"

namespace dcsim {

/// Start and end of every task of every step, by the recurrence that a schedule means:
///
///   host     issues task i when it has made all launches of task i - 1, and for a host task when
///            its events have passed, plus its host time but that of further launches
///   stream   starts it when issued, when the task before it on the stream has ended, its events
///            have passed and, for a collective, the one before it on its communicator has ended
///
/// Written without events, queues or clocks, so that it shares nothing with the engine. Memory
/// never runs short and waiting costs the host nothing. Host tasks have their time of issue in both
/// ends.
std::vector<std::vector<Interval>> ReferenceTimes(const Schedule& schedule,
                                                  std::span<const WorkCost> costs,
                                                  std::uint32_t steps);

/// One step as a graph: node 3 i is the host's part of task i until it is issued,
/// 3 i + 1 that of further launches, 3 i + 2 its part on a stream.
struct StepGraph {
  EdgeList edges;
  std::vector<Duration> times;
};
StepGraph GraphOfStep(const Schedule& schedule, std::span<const WorkCost> costs);

}  // namespace dcsim
