#pragma once

#include <string>

#include "model/ir/graph.h"
#include "model/ir/schedule.h"
#include "model/ir/timeline.h"

namespace dcsim {

/// Throws Error unless the name ends in .svg, .pdf, .png or .dot: before any work is done for it.
void CheckDagPath(const std::string& path);

/// Draws a schedule with Graphviz: a box for each layer, blue gathers, orange reductions, grey
/// copies, green optimizer, red borders and arrows on the critical path (docs/reference/commands.md
/// shows one).
///
///   path   ends in .svg, .pdf or .png, which Graphviz lays out, or .dot, the text to lay out
///
/// Throws Error for another ending, SystemError when Graphviz or the disk fails.
void WriteScheduleDag(const std::string& path,
                      const Schedule& schedule,
                      const Graph& graph,
                      const Timeline& timeline);

}  // namespace dcsim
