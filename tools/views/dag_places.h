#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/schedule.h"
#include "model/ir/timeline.h"

namespace dcsim {

/// What a node of a picture stands for; chooses its colour.
enum class DagNodeKind : std::uint8_t { kCompute, kGather, kReduce, kCopy, kOptimizer, kFolded };

struct DagEdge {
  std::size_t from = 0;
  std::size_t to = 0;
  bool critical = false;

  auto operator<=>(const DagEdge&) const = default;
};

/// The edges between what nodes have become, by node: sorted, each once and critical where one of
/// them was; none from a node to itself.
std::vector<DagEdge> MovedEdges(const std::vector<DagEdge>& edges,
                                const std::vector<std::size_t>& become);

/// Where a task is drawn.
struct TaskPlace {
  std::string phase;  // "forward", "backward", "forward (graph 2)", "optimizer", "optimizer states"
  std::string layer;  // "model.layers.3"; empty: outside layers
  std::string label;  // within it: a module, or what is done to a parameter or bucket
  DagNodeKind kind = DagNodeKind::kCompute;
};

/// The place of each task of the last micro-step and of the optimizer step; none for work of the
/// host, and for tasks that only order others. Of a step that stopped, of what was issued of the
/// micro-step in which it did, the task that could not be included.
std::vector<std::optional<TaskPlace>> PlaceTasks(const Schedule& schedule,
                                                 const Graph& graph,
                                                 const std::optional<TimelineStop>& stop);

/// The drawn task that a wait stands before: the next one on the same stream, from `task` on; the
/// number of tasks where there is none.
std::size_t NextPlaced(const Schedule& schedule,
                       const std::vector<std::optional<TaskPlace>>& places,
                       std::size_t task);

/// What a picture shows, in one line: workload, plan, ranks, step time.
std::string DagTitle(const Schedule& schedule, const Graph& graph, const Timeline& timeline);

}  // namespace dcsim
