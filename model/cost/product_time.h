#pragma once

#include <optional>

#include "model/cost/kernel_traits.h"
#include "model/cost/rate_fields.h"

namespace dcsim {

struct GpuSpec;

struct ProductRates {
  Duration start;           // besides FLOPs and the writing of the result
  double tile = 0;          // elements: an a x b tile is slower by tile / a + tile / b (ProductUse)
  double half_aligned = 1;  // of the peak where rows begin at multiples of 4 or 8 bytes but not of
                            // 16: large products (SlowProductShare)
  double unaligned = 1;     // … at odd multiples of 2 bytes
  double unaligned_transposed = 1;       // … and the second factor is transposed
  double float32 = 1;                    // … of float32's
  double grouped = 1;                    // of the peak: experts, each with rows of its own
  double vectors_per_second = 0;         // of a batch, matrices times a vector each
  double outer_elements_per_second = 0;  // … and products of two vectors

  static constexpr auto Fields() {
    return std::tuple(
        TimeField("start", &ProductRates::start),
        RateField<ProductRates, double>{"tile", &ProductRates::tile, RateRange::kAtLeastZero},
        ShareField("unaligned", &ProductRates::unaligned),
        ShareField("unaligned_transposed", &ProductRates::unaligned_transposed),
        ShareField("half_aligned", &ProductRates::half_aligned),
        ShareField("float32", &ProductRates::float32),
        ShareField("grouped", &ProductRates::grouped),
        PositiveField("vectors_per_second", &ProductRates::vectors_per_second),
        PositiveField("outer_elements_per_second", &ProductRates::outer_elements_per_second));
  }
};

// Bytes at whose multiples rows begin: what bulk loads ask, and the least that asynchronous ones
// do.
constexpr std::int64_t kRowAlignment = 16;
constexpr std::int64_t kHalfRowAlignment = 4;

/// Time of a matrix product on a GPU whose file has `kernels`, seconds:
///
///   start + max(FLOPs / (peak * efficiency * use), bytes read / bandwidth) + bytes written /
///   bandwidth
///
/// Products whose rows begin at no multiple of 16 bytes reach SlowProductShare of the peak, those
/// of float32 `float32`, without a use. A batch of matrices times a vector each takes what it
/// reads, or its thread blocks (`vectors_per_second`). Source: docs/design/costs/products.md.
std::optional<double> ProductSeconds(const KernelTraits& of, const GpuSpec& gpu);

/// Whether rows of a matrix product's factors and result begin at multiples of 16 bytes, counted
/// from the tensors' beginnings.
bool IsAlignedProduct(const KernelTraits& of);

/// What the slow kernels' tiles of 128 x 128, 128 x 64 or 64 x 64, two a multiprocessor at a time,
/// leave busy, relative to large products, times depth / (depth + 160).
/// Source: configs/measured/h200-unaligned-products.jsonl.
double SlowTilesUse(const ProductShape& of, int multiprocessors);

/// Share of the peak that products of the slow kernels reach, which take what begins at no multiple
/// of 16 bytes: `half_aligned` or, at no multiple of 4, `unaligned` of large ones, times
/// SlowTilesUse. The op is a product of a GPU whose file has `kernels`.
double SlowProductShare(const KernelTraits& of, bool half_aligned, const GpuSpec& gpu);

/// Share of the GPU that products keep busy: their results are cut in tiles, one a multiprocessor
/// at a time, so the last wave leaves some without. Of tiles of 64, 128 or 256 rows and 64 to 320
/// columns the best counts; small ones load more for each FLOP:
/// 1 / (1 + tile / rows + tile / columns), relative to 128 x 256. Where the depth is cut in up to
/// 16 parts of 2,048 or more, 0.88 of what so many more products use.
///
///   tile   elements (kernels.product)
double ProductUse(const ProductShape& of, double tile, int multiprocessors);

}  // namespace dcsim
