#include "model/cost/product_time.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model/base/units.h"
#include "model/cost/kernel_models.h"
#include "model/cost/roofline.h"
#include "model/machine/gpu.h"

namespace dcsim {
namespace {

/// Whether rows (or columns, whichever lie together) of a matrix begin at multiples of `bytes`.
bool IsAligned(const Value& matrix, std::int64_t bytes) {
  std::int64_t pitch = 0;
  for (std::size_t i = 0; i < matrix.shape.size(); ++i) {
    const bool counts = matrix.shape[i] > 1 && matrix.strides[i] > 1;
    pitch = counts && (pitch == 0 || matrix.strides[i] < pitch) ? matrix.strides[i] : pitch;
  }
  return pitch * ElementBytes(matrix.dtype) % bytes == 0;
}

bool HasAlignedRows(const KernelTraits& of, std::int64_t bytes) {
  return (of.result == nullptr || IsAligned(*of.result, bytes)) &&
         (!of.factors ||
          (IsAligned(*of.factors->left, bytes) && IsAligned(*of.factors->right, bytes)));
}

/// How fast tiles of a x b go: small ones load more for each FLOP.
double TileSpeed(double tile, std::int64_t a, std::int64_t b) {
  return 1 / (1 + tile / static_cast<double>(a) + tile / static_cast<double>(b));
}

/// The most that `use` gives for products whose depth is cut in up to 16 parts.
template <typename Use>
double BestOfParts(const ProductShape& of, Use use) {
  constexpr double kJoining = 0.88;  // of the speed, where parts of the depth are added up
  constexpr std::int64_t kMostParts = 16;
  constexpr std::int64_t kLeastDepth = 2048;  // of a part
  double best = use(of);
  for (std::int64_t parts = 2; parts <= kMostParts && of.depth / parts >= kLeastDepth; parts *= 2) {
    ProductShape split = of;
    split.products *= parts;
    split.depth /= parts;
    best = std::max(best, kJoining * use(split));
  }
  return best;
}

/// Elements that there is room for while products are cut in tiles of a x b, `at_once` at a time.
double RoomOfTiles(const ProductShape& of, std::int64_t a, std::int64_t b, std::int64_t at_once) {
  const std::int64_t tiles = of.products * DivideUp(of.rows, a) * DivideUp(of.columns, b);
  return static_cast<double>(DivideUp(tiles, at_once) * at_once * a * b);
}

bool IsTransposed(const Value& matrix) {
  const std::size_t rank = matrix.shape.size();
  return rank >= 2 && matrix.strides[rank - 2] == 1 && matrix.strides[rank - 1] != 1;
}

/// A batch of matrices times a vector each, or of two vectors: no products of tiles.
std::optional<double> VectorsSeconds(const ProductShape& of, const ProductRates& rates) {
  const auto products = static_cast<double>(of.products);
  if (of.depth == 1) {
    return products * static_cast<double>(of.rows * of.columns) / rates.outer_elements_per_second;
  }
  return std::min(of.rows, of.columns) == 1 ? std::optional(products / rates.vectors_per_second)
                                            : std::nullopt;
}

/// Share of the peak that the op's products reach.
double Efficiency(const KernelTraits& of, const GpuSpec& gpu) {
  const ProductRates& rates = gpu.kernels->product;
  if (of.inputs.front()->dtype == DType::kFloat32) {
    return rates.float32;
  }
  if (!HasAlignedRows(of, kRowAlignment)) {
    return SlowProductShare(of, HasAlignedRows(of, kHalfRowAlignment), gpu);
  }
  const double whole =
      of.family == KernelFamily::kGroupedProduct ? rates.grouped : gpu.matmul_efficiency;
  return whole * ProductUse(*of.product, rates.tile, gpu.multiprocessors);
}

/// The best tile's share, as ProductUse has it, of products that are not split.
double UseOfTiles(const ProductShape& of, double tile, int multiprocessors) {
  constexpr std::array<std::int64_t, 3> kRows = {64, 128, 256};
  constexpr std::array<std::int64_t, 7> kColumns = {64, 96, 128, 160, 192, 256, 320};
  constexpr std::int64_t kLargest =
      40'960;  // elements (320 x 128) whose sums a multiprocessor holds
  const auto whole = static_cast<double>(of.products * of.rows * of.columns);
  double best = 0;
  for (const std::int64_t a : kRows) {
    for (const std::int64_t b : kColumns) {
      if (a * b > kLargest) {
        continue;
      }
      best = std::max(best, TileSpeed(tile, a, b) / TileSpeed(tile, 128, 256) * whole /
                                RoomOfTiles(of, a, b, multiprocessors));
    }
  }
  return best;
}

}  // namespace

bool IsAlignedProduct(const KernelTraits& of) {
  return HasAlignedRows(of, kRowAlignment);
}

double SlowTilesUse(const ProductShape& of, int multiprocessors) {
  constexpr std::array<std::pair<std::int64_t, std::int64_t>, 3> kTiles = {
      {{128, 128}, {128, 64}, {64, 64}}};
  constexpr double kTile = 40;
  constexpr double kDepth = 160;  // what a tile takes before and behind its products
  const std::int64_t at_once = std::int64_t{2} * multiprocessors;
  const auto whole = static_cast<double>(of.products * of.rows * of.columns);
  double best = 0;
  for (const auto& [a, b] : kTiles) {
    best = std::max(best, TileSpeed(kTile, a, b) / TileSpeed(kTile, 128, 128) * whole /
                              RoomOfTiles(of, a, b, at_once));
  }
  const auto depth = static_cast<double>(of.depth);
  return best * depth / (depth + kDepth);
}

double SlowProductShare(const KernelTraits& of, bool half_aligned, const GpuSpec& gpu) {
  const ProductRates& rates = gpu.kernels->product;
  const bool transposed = of.factors && IsTransposed(*of.factors->right);
  const double share = half_aligned ? rates.half_aligned
                       : transposed ? rates.unaligned_transposed
                                    : rates.unaligned;
  const auto use = [&gpu](const ProductShape& parts) {
    return SlowTilesUse(parts, gpu.multiprocessors);
  };
  return share * (of.product ? BestOfParts(*of.product, use) : 1);
}

double ProductUse(const ProductShape& of, double tile, int multiprocessors) {
  return BestOfParts(
      of, [&](const ProductShape& parts) { return UseOfTiles(parts, tile, multiprocessors); });
}

std::optional<double> ProductSeconds(const KernelTraits& of, const GpuSpec& gpu) {
  if (!of.product) {
    return std::nullopt;
  }
  const KernelRates& kernels = *gpu.kernels;
  if (of.product->products > 1) {
    if (const auto vectors = VectorsSeconds(*of.product, kernels.product)) {
      return kernels.product.start.seconds() +
             std::max(*vectors, TransferSeconds(of.bytes, gpu, kernels.plain));
    }
  }
  const Bytes written = of.result == nullptr ? Bytes(0) : of.result->bytes();
  // The addend of a batch is copied into the result, which the product then reads.
  const bool adds = of.family == KernelFamily::kAddedProducts && of.result != nullptr;
  const double addend = adds ? of.elements() / kernels.elements_per_second.alike +
                                   TransferSeconds(written, gpu, kernels.plain)
                             : 0;
  return addend +
         std::max(SecondsAtPeak(of, gpu) / Efficiency(of, gpu),
                  TransferSeconds(of.bytes - written, gpu, kernels.plain)) +
         TransferSeconds(written, gpu, kernels.plain) + kernels.product.start.seconds();
}

}  // namespace dcsim
