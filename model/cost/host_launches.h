#pragma once

#include "model/ir/graph.h"

namespace dcsim {

/// What the host takes for an op that launches kernels, in launches of an elementwise one
/// (HostCosts::launch): 1.9 for a product, 20 for what sorts its indices. The ratio is PyTorch's
/// own and hardly follows the machine, as the launch itself does.
///
/// Source: medians over 53 profiles on H200s (torch 2.11.0), each in the median elementwise op of
/// its own profile; what is not listed takes 0.9 to 1.4 of it, and counts as 1.
double HostLaunches(const Graph& graph, OpId id);

}  // namespace dcsim
