#pragma once

#include <optional>

#include "model/graph/step_facts.h"
#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// The graph as a plan with `fuse_casts` sees it: a parameter that every graph reads through one
/// cast to a smaller dtype, and in no other way, is gathered in that dtype (Graph::gather_dtype).
/// Each rank casts its shard first. The cast's result is then a view of what was gathered: it lies
/// in the parameter's storage, and the cast is an op without a kernel. All ids stay what they were.
///
/// DeepSpeed PR #7588 (add_gather_and_release in passes/zero3_compile.py) decides graph by graph;
/// here a parameter has one gathered form, so that one that stays gathered serves all graphs. A
/// cast whose result the caller gets is not fused.
Graph FuseCasts(const Graph& graph);

/// Whether an op of a graph that FuseCasts made is one of the casts that have no kernel there.
bool IsFusedCast(const Graph& fused, const StepFacts& facts, OpId id);

/// A graph with or without that, as the options say. Keeps a reference to `graph`.
class PlannedGraph {
 public:
  PlannedGraph(const Graph& graph, const ScheduleOptions& options) : graph_(graph) {
    if (options.fuse_casts) {
      fused_ = FuseCasts(graph);
    }
  }
  const Graph& get() const { return fused_ ? *fused_ : graph_; }

 private:
  const Graph& graph_;
  std::optional<Graph> fused_;
};

}  // namespace dcsim
