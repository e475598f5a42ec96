#pragma once

#include <optional>

#include "model/cost/cluster.h"
#include "model/ir/graph.h"

namespace dcsim {

/// Whether ConvolutionSeconds knows the op: aten::convolution or its backward, with a weight that
/// has places.
bool IsPricedConvolution(const Graph& graph, OpId id);

/// Time of a convolution on a GPU whose file has `kernels`, seconds. A backward is two passes, one
/// for the gradient of the input and one for the weight's:
///
///   start + sum of passes: max(FLOPs / (peak * share), bytes / bandwidth) + layouts
///         + adding a bias
///
/// Where channels are not last, a pass brings its operands' channels there, and its result's back.
/// Kernels of one element need not: their passes are products of an image each, slow ones where a
/// channel fills no multiple of 16 bytes, and the weight's gradient is added up over images; the
/// faster way counts. Each channel alone (depthwise): channels that are last, a number of
/// multiply-adds a second; others by PyTorch's own kernels, a thread for each element that is
/// made, and for the weight's gradient a thread block for each of its elements.
/// Source: docs/design/costs/products.md; aten/src/ATen/native/cuda/DepthwiseConv2d.cu.
double ConvolutionSeconds(const Graph& graph, OpId id, const GpuSpec& gpu);

/// The weight of a convolution with kernels of one element and channels that are not last, or with
/// one place.
std::optional<ValueId> FindSingleKernel(const Graph& graph, OpId id);

}  // namespace dcsim
