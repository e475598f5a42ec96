#pragma once

#include <set>
#include <string>

#include "model/ir/graph.h"
#include "model/ir/schedule.h"

namespace dcsim {

/// Test failures unless Verify and plain reachability (RaceOracle) both find a schedule right.
void ExpectRight(const Schedule& schedule, const Graph& graph);

/// Labels of the tasks that, without the events they wait for, make a small schedule wrong. A test
/// failure for each on which Verify and plain reachability disagree.
std::set<std::string> NeededEvents(const Schedule& schedule, const Graph& graph);

}  // namespace dcsim
