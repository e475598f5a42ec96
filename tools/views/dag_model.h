#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/schedule.h"
#include "model/ir/timeline.h"
#include "tools/views/dag_places.h"

namespace dcsim {

/// Tasks drawn as one node.
struct DagNode {
  DagNodeKind kind = DagNodeKind::kCompute;
  std::string label;
  std::size_t cluster = 0;
  std::size_t tasks = 0;
  Duration busy;      // device time of its tasks
  Duration critical;  // of it on the critical path
};

/// A box around nodes: a layer of one graph, or a whole graph; `parent` is the box around it.
struct DagCluster {
  std::string label;
  std::size_t parent = kNone;

  static constexpr std::size_t kNone = SIZE_MAX;
};

/// A schedule folded until a person can read it: its last micro-step and the optimizer step, one
/// box a layer, one node a module, gathered parameter and bucket flush; of layers that look alike,
/// four or more in a row, only the first and the last stay, and one node stands for those between.
struct DagModel {
  std::string title;
  std::vector<DagCluster> clusters;
  std::vector<DagNode> nodes;
  std::vector<DagEdge> edges;  // sorted, each once
};

DagModel FoldSchedule(const Schedule& schedule, const Graph& graph, const Timeline& timeline);

}  // namespace dcsim
