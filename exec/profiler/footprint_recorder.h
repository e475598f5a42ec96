#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "exec/interpreter/graph_runner.h"
#include "model/ir/profile.h"

namespace dcsim::exec {

/// Writes down every op's calls of the caching allocator while a graph runs, with the output that
/// lives in each block.
class FootprintRecorder : public OpListener {
 public:
  /// Listens to the allocator of the current device, which must have been used before. Records only
  /// between BeforeOp and AfterOp.
  explicit FootprintRecorder(const Graph& graph);

  void BeforeOp(OpId id) override;
  void AfterOp(OpId id, const Frame& frame) override;

  /// By op, of the last run.
  const std::vector<std::vector<FootprintStep>>& footprints() const { return footprints_; }

 private:
  /// Of the op that runs.
  struct Calls {
    bool recording = false;
    std::vector<FootprintStep> steps;
    std::uint32_t allocations = 0;
    std::unordered_map<std::size_t, std::uint32_t> block_at;  // by address
  };

  const Graph& graph_;
  std::vector<std::vector<FootprintStep>> footprints_;
  std::shared_ptr<Calls> calls_;  // the allocator's too: nobody can take a listener from it
};

}  // namespace dcsim::exec
