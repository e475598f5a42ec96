#pragma once

#include <cstdint>
#include <vector>

#include "model/graph/dag.h"
#include "model/passes/deepcompile/bit_table.h"
#include "model/passes/deepcompile/pass_graph.h"

namespace dcsim {

/// What each gather of a PassGraph still needs, while nodes are scheduled one after the other.
/// Gathers are numbered in the order of their nodes.
///
/// Sums over what is left of a gather's path are kept up to date instead of walking the graph
/// again: scheduling a node takes time proportional to the gathers whose paths it is on.
class PathFinder {
 public:
  explicit PathFinder(const PassGraph& graph);

  std::size_t gather_count() const { return gathers_.size(); }
  std::uint32_t gather_node(std::size_t a) const { return gathers_[a].node; }
  std::uint32_t last_use(std::size_t a) const { return gathers_[a].last_use; }
  /// The number of the gather that is node `node`.
  std::size_t gather_of(std::uint32_t node) const { return gather_of_[node]; }

  bool is_scheduled(std::uint32_t node) const { return scheduled_[node]; }
  void MarkScheduled(std::uint32_t node);

  /// Gathers among a node's ancestors, itself included, whether scheduled or not.
  std::size_t GathersBefore(std::uint32_t node) const { return before_.Count(node); }
  bool Needs(std::uint32_t node, std::size_t gather) const { return before_.Has(node, gather); }
  /// Calls `visit` with every gather whose last use needs gather `g`, itself included.
  template <typename Visit>
  void ForEachThatNeeds(std::size_t g, Visit visit) const {
    until_use_.ForEach(gathers_[g].node, visit);
  }

  /// Of the gather alone, without padding; 0 once it is scheduled.
  Bytes gather_bytes(std::size_t a) const;
  /// Of other gathers not scheduled that its last use needs.
  Bytes further_bytes(std::size_t a) const { return gathers_[a].further_bytes; }
  /// Gathers not scheduled that its releases need, itself included.
  std::size_t path_gathers(std::size_t a) const { return gathers_[a].path_gathers; }
  /// Device time of nodes not scheduled up to its last use, itself left out.
  Duration free_time(std::size_t a) const { return gathers_[a].free_time; }

  /// Nodes not scheduled that a node needs, depth first by argument, itself last.
  std::vector<std::uint32_t> Requirements(std::uint32_t node) const;
  /// The gather itself, unless scheduled.
  std::vector<std::uint32_t> UntilGather(std::size_t a) const;
  /// Then what its last use needs, then what its releases need.
  std::vector<std::uint32_t> UntilFree(std::size_t a) const;
  /// The gathers and releases of UntilFree.
  std::vector<std::uint32_t> GatherEvents(std::size_t a);

 private:
  struct Gather {
    std::uint32_t node = 0;
    std::uint32_t last_use = 0;
    std::vector<std::uint32_t> releases;  // of its parameter, in graph order
    Bytes further_bytes;
    std::size_t path_gathers = 0;
    Duration free_time;
    bool has_events = false;
    std::vector<std::uint32_t> events;  // some may have been scheduled since
  };

  void FindGathers();
  void FillTables();
  void FillSums();

  const PassGraph& graph_;
  std::vector<Gather> gathers_;
  std::vector<std::size_t> gather_of_;  // by node
  std::vector<bool> scheduled_;         // by node
  BitTable before_;                     // by node: gathers that it needs
  BitTable until_use_;                  // by node: gathers whose last use needs it
  BitTable until_release_;              // … or one of whose releases does
  DepthFirstSearch arguments_;
};

}  // namespace dcsim
