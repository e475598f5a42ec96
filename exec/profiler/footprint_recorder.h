#pragma once

#include <unordered_map>
#include <vector>

#include "exec/interpreter/graph_runner.h"
#include "model/ir/profile.h"

namespace dcsim::exec {

/// Writes down every op's calls of the caching allocator while a graph runs, with the output that
/// lives in each block.
class FootprintRecorder : public OpListener {
 public:
  /// Attaches to the allocator of the current device for the rest of the process; it must have been
  /// used before. Records only between BeforeOp and AfterOp.
  explicit FootprintRecorder(const Graph& graph);

  void BeforeOp(OpId id) override;
  void AfterOp(OpId id, const Frame& frame) override;

  /// By op, of the last run.
  const std::vector<std::vector<FootprintStep>>& footprints() const { return footprints_; }

 private:
  const Graph& graph_;
  bool recording_ = false;
  std::vector<std::vector<FootprintStep>> footprints_;
  std::vector<FootprintStep> steps_;                         // of the op that runs
  std::uint32_t allocations_ = 0;                            // of that op
  std::unordered_map<std::size_t, std::uint32_t> block_at_;  // by address, of that op
};

}  // namespace dcsim::exec
