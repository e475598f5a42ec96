#pragma once

#include "model/ir/graph.h"
#include "model/machine/cluster.h"
#include "sim/search/space.h"

namespace dcsim {

/// Leaves gathers by copy engines out where the cluster has no table of them for this number of
/// ranks: the ring of NCCL that stands in for a missing table knows nothing of copies. Where the
/// space has no other gathers, they stay. Returns whether something was left out.
bool LeaveOutUnmeasuredCopies(const Cluster& cluster, int ranks, SearchSpace& space);

/// `fuse_casts` is decided only where the graph has casts to fuse: without any, both values are one
/// schedule, which is kept once.
void LeaveOutUselessFusing(const Graph& graph, SearchSpace& space);

/// `align_tensors` is decided only where a parameter or a shard fills no multiple of 16 bytes: else
/// both values are one schedule. Where it may be true, it is: the same kernels are never slower.
void DecideAlignment(const Graph& graph, int ranks, SearchSpace& space);

/// Compiled graphs run in DeepSpeed alone, with its handling of gradients, and each form is for the
/// stages that it was lowered for: options get that backend, and stages of another form are left
/// out. Returns whether some were. Throws Error where none is left.
bool SearchCompiled(const Graph& compiled, SearchSpace& space);

}  // namespace dcsim
