#pragma once

#include <cstddef>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// What Inductor makes of a graph that DeepCompile's passes have ordered.
struct LoweredGraph {
  GraphPlan plan;
  /// Fused prefetches that come behind the loss: too late for this graph, in time for its backward.
  std::vector<std::vector<ParamId>> late;
};

/// Whether Inductor (torch 2.11) pulls the forward graph `g` ahead of what DeepCompile inserts in
/// its middle. It fuses the count of class labels, which needs no op of the model, with the loss,
/// puts the fused kernel where the count stood, and ahead of it all that it needs
/// (torch/_inductor/scheduler.py: fused nodes by `min_order`, then topological_sort_schedule, depth
/// first). A fused prefetch has no result, so nothing needs it.
bool PullsForward(const Graph& graph, std::size_t g);

/// The plan of graph `g` in the order in which Inductor lowered it: ops as recorded; waits,
/// releases and reductions at the uses that they belong to; gathers in front of the op that
/// DeepCompile put them in front of. `order` kInductor211: single gathers of a forward stand right
/// before their waits; fused prefetches (`prefetched`) of one that Inductor pulls, but those at its
/// start, come behind the loss, so that their parameters are gathered one by one at their uses.
LoweredGraph TakeInductorOrder(const Graph& graph,
                               std::size_t g,
                               const GraphPlan& decided,
                               GatherOrder order,
                               bool prefetched);

/// Moves the gathers of `late` prefetches, without parameters in `persistent` and those that the
/// graph does not gather, to the start of the backward graph that follows.
void GatherLate(const std::vector<std::vector<ParamId>>& late,
                const std::vector<ParamId>& persistent,
                GraphPlan& backward);

}  // namespace dcsim
