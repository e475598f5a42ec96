#pragma once

#include "model/ir/document.h"
#include "model/ir/graph.h"
#include "model/ir/schedule.h"
#include "model/ir/timeline.h"

namespace dcsim {

/// One step in columns, for programs that draw it; times in ns, memory in bytes.
///
///   streams      by name, the host's thread too: starts, ends, kinds and labels of tasks with a
///                length, the host's kinds being "host" and "host waits". Of more than 8,000 those
///                within a pixel of each other are one, with kind and label of the longest; `tasks`
///                counts them
///   exposed_ns   by kind of collective: the time in which it ran and compute did not
///   memory       columns in host order: time_ns, allocated, reserved and, in `live` by class, what
///                is alive as requested; classes without any left out
///
/// The timeline is of the same schedule, of one rank.
Json PrintStepDetail(const Timeline& timeline, const Schedule& schedule, const Graph& graph);

}  // namespace dcsim
