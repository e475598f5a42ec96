#pragma once

#include <string>

#include "model/ir/graph.h"
#include "model/ir/schedule.h"

namespace dcsim {

/// A schedule as lines that a test or a person can read, one a task in host issue order:
///
///   0 gather all-gather w1 [8192 B] +b7
///   1 compute wait for all-gather w1 after 0
///   2 compute aten::mm r b5,b7 w b8 +b8
///   3 host release w1 -b7
///
/// Columns: task, stream (or host), label, "[payload]" of collectives and "[moved]" of memory work,
/// "after" the tasks it waits for, "r" and "w" the buffers it reads and writes, "+" and "-" its
/// allocator calls in order. A first line for each resident buffer: "resident b0 parameters 4096
/// B".
std::string PrintScheduleText(const Schedule& schedule, const Graph& graph);

}  // namespace dcsim
