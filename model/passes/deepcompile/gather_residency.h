#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/base/units.h"
#include "model/passes/deepcompile/pass_graph.h"

namespace dcsim {

/// What a path does to gathered memory: the most alive in it, and what is alive behind it.
struct PathMemory {
  Bytes peak;
  Bytes live;
};

/// Bytes of gathered parameters alive, as 0.19.8's scheduler counts them (_GatheredParamTracker):
/// from a gather until as many releases have followed as the parameter has uses. Reductions and
/// activations do not count.
class GatherResidency {
 public:
  explicit GatherResidency(const PassGraph& graph);

  /// Goes on by one node, which is now decided.
  void Apply(std::uint32_t node);

  /// Memory along a path from here, which is not taken. Stops where the peak exceeds `limit`.
  PathMemory Simulate(std::span<const std::uint32_t> path, Bytes limit);

  Bytes live() const { return live_; }

 private:
  struct Param {
    Bytes bytes;
    bool alive = false;
    int releases = 0;           // since its gather
    int expected_releases = 0;  // that free it
  };

  const PassGraph& graph_;
  std::vector<Param> params_;  // by ParamId
  Bytes live_;
};

}  // namespace dcsim
