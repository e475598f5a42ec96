#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/schedule.h"
#include "model/ir/timeline.h"
#include "tools/views/dag_places.h"

namespace dcsim {

/// Which half of the page: the forward above, backward and optimizer below.
enum class PageBand : std::uint8_t { kForward, kBackward };

/// Modules that are drawn below each other: all layers of a kind ("model.layers"), what lies before
/// or behind them, or the optimizer.
struct PageColumn {
  PageBand band = PageBand::kForward;
  std::string label;
  std::size_t layers = 0;  // that are alike; 0: no layers
  Duration compute;        // device time of the compute stream, of all layers
};

/// Tasks of one kind on one stream in one column.
struct PageBox {
  DagNodeKind kind = DagNodeKind::kCompute;
  StreamRole lane = StreamRole::kCompute;
  std::size_t column = 0;
  std::string label;
  std::size_t layers = 1;  // that have such tasks; figures below are sums over all of them
  std::size_t tasks = 0;
  Duration busy;      // device time
  Duration critical;  // of it on the critical path
  Bytes payload;      // of collectives
};

/// A schedule on one page: its last micro-step and the optimizer step.
struct DagPage {
  std::string title;
  std::string critical;  // what the critical path is made of; empty for a step that stopped
  std::vector<PageColumn> columns;  // by band, then by time
  std::vector<PageBox> boxes;       // by column, lane and first start
  std::vector<DagEdge> arrows;      // sorted, each once
};

/// Layers are those of one module list. Of each column and stream the longest few boxes stay apart,
/// and the others become one, so that the page has some 60 boxes at most.
DagPage FoldPage(const Schedule& schedule, const Graph& graph, const Timeline& timeline);

}  // namespace dcsim
