#pragma once

#include "model/cost/cluster.h"
#include "model/ir/graph.h"

namespace dcsim {

/// Time of an op without products on a GPU whose file has `kernels`, seconds, by what it does:
///
///   elementwise           bytes, or elements of the result at the rate of their access
///   sums, means, ...      start + bytes + waves of thread blocks + what joining parts takes
///   softmax, its backward bytes, by the length of its rows; _safe_softmax and _softmax's backward
///                         are several kernels
///   norms                 norm_time.h
///   embeddings, indices   indexing_time.h
///   pooling, im2col       elements of all windows
///   cat, stack            bytes; by elements where a part is not contiguous
///   padding, slices'      filling the result, then copying the operand into it
///   backward
///
/// Source: docs/design/costs/elementwise.md.
double MemorySeconds(const Graph& graph, OpId id, const GpuSpec& gpu);

/// Of filling a tensor with one value on a GPU whose file has `kernels`, seconds.
double FillSeconds(const Value& value, const GpuSpec& gpu);

/// Of reading a tensor whole and writing as many bytes, in its own layout, seconds.
double WholeCopySeconds(const Value& value, const GpuSpec& gpu);

/// Of copying a tensor into a contiguous one where it is none, seconds; 0 where it is.
double MakeContiguousSeconds(const Value& value, const GpuSpec& gpu);

/// Of copying a tensor into a contiguous one on a GPU whose file has `kernels`, seconds.
double ContiguousCopySeconds(const Value& value, const GpuSpec& gpu);

}  // namespace dcsim
