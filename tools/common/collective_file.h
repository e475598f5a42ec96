#pragma once

#include <string>

#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/ir/schedule.h"

namespace dcsim {

/// The text of a dc-collectives/1 file (docs/formats.md), a collective a line.
std::string PrintCollectiveFile(const Schedule& schedule, const Plan& plan, const Graph& graph);

}  // namespace dcsim
