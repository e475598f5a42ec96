#pragma once

#include <vector>

#include "model/ir/graph.h"
#include "model/machine/gpu.h"

namespace dcsim {

/// Blocks that libraries allocate once in a process that trains the graph, and keep: the GPU's
/// `workspaces` (cuBLAS), and its `bias_workspaces` where a product adds a bias, which PyTorch 2.11
/// hands to cuBLASLt with a workspace of its own (aten/src/ATen/cuda/CublasHandlePool.cpp).
std::vector<Bytes> LibraryWorkspaces(const GpuSpec& gpu, const Graph& graph);

}  // namespace dcsim
