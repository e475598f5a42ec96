#pragma once

#include "model/cost/cluster.h"
#include "model/ir/graph.h"

namespace dcsim {

/// Time of matrix products and convolutions on a GPU whose file has `kernels`, seconds:
///
///   start + max(FLOPs / (peak * efficiency * use), bytes read / bandwidth) + bytes written /
///   bandwidth
///
/// Products whose rows begin at no multiple of 16 bytes reach `half_aligned` of the peak, at no
/// multiple of 4 `unaligned`, those of float32 `float32`; these three and convolutions have no use.
/// Source: docs/costs.md.
double ProductSeconds(const Graph& graph, OpId id, const GpuSpec& gpu);

/// Share of the GPU that products [rows, columns] keep busy: the result is cut in tiles, one a
/// multiprocessor at a time, so the last wave leaves some without. Of tiles of 64, 128 or 256 rows
/// and 64 to 320 columns the best counts; small ones load more for each FLOP:
/// 1 / (1 + tile / rows + tile / columns), relative to 128 x 256.
///
///   products   how many alike ones, of a batch or of groups
///   tile       elements (kernels.product)
double ProductUse(std::int64_t products,
                  std::int64_t rows,
                  std::int64_t columns,
                  double tile,
                  int multiprocessors);

}  // namespace dcsim
