#pragma once

#include <optional>

#include "model/cost/cluster.h"
#include "model/ir/graph.h"

namespace dcsim {

/// Time of a norm on a GPU whose file has `kernels`, seconds; none of another op:
///
///   layer, RMS norm   bytes + rows; the backward's sums for weight and bias besides; operands that
///                     are not contiguous, as behind a convolution, are copied first
///   group norm        elements, or those of one group, which a thread block sums
///   batch norm        PyTorch's own kernels (cuDNN's know no bfloat16), a thread block a
///                     channel: batch_norm_time.h
///
/// Source: docs/design/costs/elementwise.md.
std::optional<double> FindNormSeconds(const Graph& graph, OpId id, const GpuSpec& gpu);

}  // namespace dcsim
