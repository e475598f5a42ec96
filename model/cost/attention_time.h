#pragma once

#include "model/cost/cluster.h"
#include "model/cost/op_flops.h"
#include "model/ir/graph.h"

namespace dcsim {

/// Time of fused attention on a GPU whose file has `kernels`, seconds:
///
///   (blocks * block + pairs * FLOPs of a pair / rate of a multiprocessor) / multiprocessors
///     + tail * time of the longest block
///
/// over blocks of 128 queries (of keys in the backward, which has kernels before and behind that)
/// and their pairs with blocks of the other side. The memory-efficient kernels, which take masks,
/// reach a share of the peak in half precision. cuDNN's blocks start one after the other, each
/// where a multiprocessor comes free. Source: docs/design/costs/attention.md.
double AttentionSeconds(const Graph& graph, OpId id, const AttentionShape& of, const GpuSpec& gpu);

}  // namespace dcsim
