#pragma once

#include "model/ir/graph.h"

namespace dcsim {

/// What an op that nobody has profiled launches, and what that takes of the host.
struct OpLaunches {
  double kernels = 1;  // mean; each is a gap on the GPU
  double host = 1;     // in launches of an elementwise op (HostCosts::launch)
};

/// 1.5 kernels of a product, which costs the host 1.9 launches; 20 of what sorts its indices. Both
/// are PyTorch's own and hardly follow the machine, as the launch itself does.
///
/// Source: means (kernels) and medians (host, each in the median elementwise op of its own
/// profile) over the profiles of 60 workloads on H200s (torch 2.11.0). What is not listed launches
/// one kernel and takes 0.9 to 1.4 of an elementwise op, which counts as 1.
OpLaunches LaunchesOf(const Graph& graph, OpId id);

}  // namespace dcsim
