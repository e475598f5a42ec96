#pragma once

#include "model/cost/cluster.h"
#include "model/ir/graph.h"

namespace dcsim {

/// How an op without products goes through memory, as the library's kernels care: in whole vectors
/// where all tensors are dense, alike in layout and of one dtype, else element by element.
MemoryAccess AccessOf(const Graph& graph, OpId id);

/// Time of an op alone that nobody has profiled, rounded up to whole ns and at least the shortest
/// kernel:
///
///   max(FLOPs / (peak * efficiency), bytes / (bandwidth * efficiency))
///
/// With the GPU file's `kernels` finer: bytes at the rate of their access, element by element no
/// more than `elements_per_second`; a product's result is written behind it, and it takes
/// `product_start` more; products with rows that begin at no multiple of 16 bytes reach
/// `half_aligned_product` of the peak, at no multiple of 4 `unaligned_product`. Fused attention is
///
///   (blocks * block + pairs * FLOPs of a pair / rate of a multiprocessor) / multiprocessors
///     + tail * time of the longest block
///
/// over blocks of 128 queries (of keys in the backward, which has kernels before and behind that)
/// and their pairs with blocks of the other side. Throws Error for a product in a dtype without a
/// peak. Source: docs/costs.md.
Duration RooflineTime(const Graph& graph, OpId id, const GpuSpec& gpu);

}  // namespace dcsim
