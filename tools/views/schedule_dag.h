#pragma once

#include <cstdint>
#include <string>

#include "model/ir/graph.h"
#include "model/ir/schedule.h"
#include "model/ir/timeline.h"

namespace dcsim {

/// Throws Error unless the name ends in .svg, .pdf, .png or .dot: before any work is done for it.
void CheckDagPath(const std::string& path);

/// What is drawn of a schedule.
enum class DagForm : std::uint8_t {
  kPage,   // lanes for streams, one layer for all that are alike (FoldPage)
  kLarge,  // a node a module, gathered parameter and bucket flush (FoldSchedule)
};

/// Draws a schedule with Graphviz: blue gathers, orange reductions, grey copies, green optimizer,
/// red borders and arrows on the critical path.
///
///   path   ends in .svg, .pdf or .png, which Graphviz draws, or .dot, the text of the graph
///
/// Throws Error for another ending, SystemError when Graphviz or the disk fails.
void WriteScheduleDag(const std::string& path,
                      DagForm form,
                      const Schedule& schedule,
                      const Graph& graph,
                      const Timeline& timeline);

}  // namespace dcsim
