#pragma once

#include <string>

#include "model/ir/graph.h"
#include "model/ir/schedule.h"
#include "model/ir/timeline.h"

namespace dcsim {

/// Where two timelines of one schedule differ: the time of each class of work (matrix products,
/// attention, other ops, each kind of collective, each kind of other task) predicted beside
/// measured, and below them the five tasks that differ most. Times of tasks on different streams
/// overlap, so they add up to more than the step.
std::string PrintDifferences(const Timeline& predicted,
                             const Timeline& measured,
                             const Schedule& schedule,
                             const Graph& graph);

}  // namespace dcsim
