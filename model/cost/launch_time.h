#pragma once

#include "model/base/units.h"
#include "model/cost/cluster.h"
#include "model/ir/graph.h"

namespace dcsim {

/// Bytes that a launch of a Triton kernel moves from and to memory: those of its reads and writes.
/// An argument that a kernel reads in several loops over the reduced elements counts that often
/// where the rows that are in work at a time do not fit the cache.
Bytes LaunchedBytes(const Graph& graph, OpId id, const GpuSpec& gpu);

/// Seconds that it takes: start, then bytes at the share of the bandwidth that kernels of its kind
/// reach, or what it computes at those rates, whichever is longer (GpuSpec::kernels, triton);
/// without those rates all bytes at `bandwidth_efficiency`.
double LaunchSeconds(const Graph& graph, OpId id, const GpuSpec& gpu);

}  // namespace dcsim
