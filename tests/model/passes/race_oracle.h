#pragma once

#include <string>
#include <vector>

#include "model/graph/dag.h"
#include "model/ir/schedule.h"

namespace dcsim {

/// A second opinion on races, by plain reachability: two steps of a schedule as one graph, an edge
/// wherever one task ends before another starts (same stream, event, host), and every pair of
/// accesses looked at. Quadratic, so for small schedules only. Waits must name earlier tasks.
class RaceOracle {
 public:
  explicit RaceOracle(const Schedule& schedule);

  /// Whether task a of the first step certainly ends before task b of the first step starts.
  bool Ordered(TaskId a, TaskId b) const { return reach_[a.index()][b.index()]; }

  /// One line for each race and each use outside a buffer's life, over both steps.
  std::vector<std::string> FindRaces() const;

 private:
  /// One life of a buffer: nodes in issue order.
  struct Life {
    BufferId buffer;
    bool before_steps = false;  // a resident's first: it lies there, filled, before the first step
    std::size_t allocated = kNever;
    std::size_t freed = kNever;
    std::vector<std::pair<std::size_t, bool>> uses;  // node, writes
  };
  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);

  std::vector<Life> Lives() const;
  void CheckLife(const Life& life, std::vector<std::string>& races) const;
  void CheckReuse(const Life& before, const Life& after, std::vector<std::string>& races) const;
  bool Before(std::size_t a, std::size_t b) const { return a == b || reach_[a][b]; }

  const Schedule& schedule_;
  std::vector<std::vector<bool>> reach_;  // by node: step * task_count + task
};

}  // namespace dcsim
