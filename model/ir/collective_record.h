#pragma once

#include "model/ir/document.h"
#include "model/ir/graph.h"
#include "model/ir/schedule.h"

namespace dcsim {

/// The collectives of one step in the order in which the host issues them, as JSON: a list of
/// objects with `kind`, `engine`, `dtype`, `stream`, `communicator`, `micro_step`, `one_launch`,
/// `calls` ([parameter or null, elements, offset in the bucket]), `payload_bytes`, `wire_bytes` and
/// `after`: of each stream, the last collective of the list that has certainly ended when this one
/// starts, through events, stream order and host waits; nearest first. Part of a dc-collectives/1
/// (docs/reference/formats.md).
Json PrintCollectives(const Schedule& schedule, const Graph& graph);

/// The same with the plan that made them: a dc-collectives/1 document, from which the plan is read
/// back (ReadPlan of its "plan").
Json PrintCollectiveRecord(const Schedule& schedule, const Json& plan, const Graph& graph);

}  // namespace dcsim
