#pragma once

#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/ir/schedule.h"

namespace dcsim {

/// Two matrix products, forward and backward, in bfloat16. No two tensors have equal bytes, and no
/// parameter divides evenly over two ranks:
///
///   w1 [3,5]  15 elements, 30 B   shard 8, gathered 16 elements or 32 B
///   w2 [5,1]   5 elements, 10 B   shard 3, gathered  6 elements or 12 B
///   x  [2,3]  12 B      a = x w1 [2,5]  20 B      b = a w2 [2,1]  4 B      l, the loss, 2 B
///
/// The backward makes gb (4 B), g2 (10 B), ga (20 B), g1 (30 B) from the tangent t (2 B). It uses
/// w2 and not w1: the input needs no gradient.
Graph TwoLayers();

/// One product forward and one backward, each of 2 * 4 * 1000 * 1000 = 8e6 FLOP.
Graph OneLayer();

/// A spec of policy plain-1 for a stage, with the bucket of 1000 elements that TwoLayers fits in.
PlanSpec TinySpec(int stage);

/// Resolve and Lower for two ranks, without a profile.
Schedule LowerTiny(const PlanSpec& spec, const Graph& graph);

/// PrintScheduleText of the same, behind a newline, so that a raw string may start with one.
std::string TinyScheduleText(const PlanSpec& spec, const Graph& graph);

/// Its lines of the tasks from `first` to `last`.
std::string TinyTaskLines(const PlanSpec& spec,
                          const Graph& graph,
                          std::size_t first,
                          std::size_t last);

}  // namespace dcsim
