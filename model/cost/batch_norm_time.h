#pragma once

#include "model/cost/cluster.h"
#include "model/ir/graph.h"

namespace dcsim {

/// Time of PyTorch's own batch norms, or of their backward, on a GPU whose file has `kernels`,
/// seconds; of [images, channels, places...]:
///
///   in evaluation            bytes (forward)
///   channels last, or rows   elements / rate, besides a start
///   neither these nor contiguous, or of a backward the gradient not: the same at another rate
///   contiguous               waves of thread blocks, one for each channel, and forward the writing
///
/// A block of up to 512 threads goes through its channel in rounds, each as long as memory takes to
/// answer, less where the L2 cache still holds the input, or as long as its neighbours on the
/// multiprocessor are busy. Writing is one element a thread at a time; rows that do not fill the
/// threads leave some idle, and short ones are as many thread blocks. A gradient that is not
/// contiguous costs a copy.
/// Source: aten/src/ATen/native/cuda/Normalization.cuh; docs/design/costs/elementwise.md.
double BatchNormSeconds(const Graph& graph, OpId id, const GpuSpec& gpu);

}  // namespace dcsim
