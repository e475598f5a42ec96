#pragma once

#include <memory>
#include <vector>

#include "exec/interpreter/kernel_program.h"

namespace dcsim::exec {

/// Has each kernel of a compiled graph run with the fastest of its configurations, as Inductor's
/// first launch of it does (torch/_inductor/runtime/triton_heuristics.py, CachingAutotuner.bench):
/// each is timed on the current GPU with what the kernel's first launch in the graph takes, the
/// caches flushed before, and the least of its times counts.
///
/// Tensors are zeros in memory of the driver's, which is given back. So a kernel that adds
/// atomically keeps its first configuration: all its indices would be the same. So does a kernel
/// whose tensors find no memory.
///
///   kernels   by index into graph.kernels
void UseFastestConfigurations(const Graph& graph,
                              c10::Device device,
                              const std::vector<std::unique_ptr<KernelProgram>>& kernels);

}  // namespace dcsim::exec
