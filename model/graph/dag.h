#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <boost/graph/compressed_sparse_row_graph.hpp>

#include "model/base/units.h"

namespace dcsim {

/// A directed graph over nodes 0 … node_count-1, given by its edges (from, to).
struct EdgeList {
  std::size_t node_count = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
};

/// Nodes so that every edge goes forward, or nothing when the graph has a cycle.
std::optional<std::vector<std::uint32_t>> FindTopologicalOrder(const EdgeList& graph);

/// A graph without a cycle that is searched again and again.
class DepthFirstSearch {
 public:
  /// Edges of a node are followed in the order of the list.
  explicit DepthFirstSearch(const EdgeList& graph);

  /// Nodes to which paths lead from `roots`, in the order in which a search from one root after the
  /// other leaves them: each behind those that it leads to, a root last of its own. Paths end at
  /// nodes that are `left_out`.
  std::vector<std::uint32_t> PostOrder(std::span<const std::uint32_t> roots,
                                       const std::vector<bool>& left_out) const;

 private:
  boost::compressed_sparse_row_graph<boost::directedS> graph_;
};

/// reached[v] says whether a path leads from any of `sources` to v; sources are reached.
std::vector<bool> Reachable(const EdgeList& graph, std::span<const std::uint32_t> sources);

struct CriticalPath {
  Duration length;
  std::vector<std::uint32_t> nodes;  // from first to last
};

/// The heaviest path when node v takes times[v]; ties go to the earlier node. The graph must have
/// no cycle (checked).
CriticalPath FindCriticalPath(const EdgeList& graph, std::span<const Duration> times);

}  // namespace dcsim
