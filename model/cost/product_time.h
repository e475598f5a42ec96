#pragma once

#include <cstdint>
#include <optional>

#include "model/cost/cluster.h"
#include "model/cost/op_flops.h"
#include "model/ir/graph.h"

namespace dcsim {

// Bytes at whose multiples rows begin: what bulk loads ask, and the least that asynchronous ones
// do.
constexpr std::int64_t kRowAlignment = 16;
constexpr std::int64_t kHalfRowAlignment = 4;

/// Time of matrix products, and convolutions (ConvolutionSeconds), on a GPU whose file has
/// `kernels`, seconds:
///
///   start + max(FLOPs / (peak * efficiency * use), bytes read / bandwidth) + bytes written /
///   bandwidth
///
/// Products whose rows begin at no multiple of 16 bytes reach SlowProductShare of the peak, those
/// of float32 `float32`, without a use. A batch of matrices times a vector each takes what it
/// reads, or its thread blocks (`vectors_per_second`). Source: docs/design/costs/products.md.
double ProductSeconds(const Graph& graph, OpId id, const GpuSpec& gpu);

/// Whether rows of a matrix product's factors and result begin at multiples of 16 bytes, counted
/// from the tensors' beginnings.
bool IsAlignedProduct(const Graph& graph, OpId id);

/// What the slow kernels' tiles of 128 x 128, 128 x 64 or 64 x 64, two a multiprocessor at a time,
/// leave busy, relative to large products, times depth / (depth + 160).
/// Source: configs/measured/h200-unaligned-products.jsonl.
double SlowTilesUse(const ProductShape& of, int multiprocessors);

/// Share of the peak that products of the slow kernels reach, which take what begins at no multiple
/// of 16 bytes: `half_aligned` or, at no multiple of 4, `unaligned` of large ones, times
/// SlowTilesUse. The op is a product of a GPU whose file has `kernels`.
double SlowProductShare(const Graph& graph, OpId id, bool half_aligned, const GpuSpec& gpu);

/// Share of the GPU that products keep busy: their results are cut in tiles, one a multiprocessor
/// at a time, so the last wave leaves some without. Of tiles of 64, 128 or 256 rows and 64 to 320
/// columns the best counts; small ones load more for each FLOP:
/// 1 / (1 + tile / rows + tile / columns), relative to 128 x 256. Where the depth is cut in up to
/// 16 parts of 2,048 or more, 0.88 of what so many more products use.
///
///   tile   elements (kernels.product)
double ProductUse(const ProductShape& of, double tile, int multiprocessors);

}  // namespace dcsim
