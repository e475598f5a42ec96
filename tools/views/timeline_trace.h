#pragma once

#include <span>
#include <string>

#include "model/ir/document.h"
#include "model/ir/graph.h"
#include "model/ir/schedule.h"
#include "model/ir/timeline.h"

namespace dcsim {

/// Timelines of one step, one a rank, at least one, as Chrome trace JSON, which Perfetto opens as
/// it is: a process a rank, the host and each stream as threads, arrows from each gather to its
/// first use and from each gradient copy to its reduction, counters of live, allocated, active and
/// reserved bytes. Times in us with three decimals (docs/reference/formats.md, dc-timeline/1).
/// `versions` names the program that made them.
std::string PrintTimelineTrace(std::span<const Timeline> ranks,
                               const Schedule& schedule,
                               const Graph& graph,
                               const Json& versions);

}  // namespace dcsim
