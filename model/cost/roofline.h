#pragma once

#include "model/cost/cluster.h"
#include "model/ir/graph.h"

namespace dcsim {

/// Time of an op alone that nobody has profiled, rounded up to whole ns and at least the shortest
/// kernel:
///
///   max(FLOPs / (peak * efficiency), bytes / (bandwidth * efficiency))
///
/// With the GPU file's `kernels` finer, by what the op is: ProductSeconds, AttentionSeconds,
/// MemorySeconds. Throws Error for a product in a dtype without a peak. Source:
/// docs/design/costs.md.
Duration RooflineTime(const Graph& graph, OpId id, const GpuSpec& gpu);

/// The op's products at the peak of its dtype; 0 where it has none. Throws Error without a peak.
double SecondsAtPeak(const Graph& graph, OpId id, const GpuSpec& gpu);

/// Bytes at a share of the bandwidth.
double TransferSeconds(Bytes bytes, const GpuSpec& gpu, double share);

}  // namespace dcsim
