#include "model/cost/product_time.h"

#include <algorithm>
#include <array>

#include "model/cost/op_flops.h"
#include "model/cost/roofline.h"

namespace dcsim {
namespace {

// Bytes at whose multiples rows begin: what bulk loads ask, and the least that asynchronous ones
// do.
constexpr std::int64_t kAlignment = 16;
constexpr std::int64_t kHalfAlignment = 4;

/// Whether rows (or columns, whichever lie together) of a matrix begin at multiples of `bytes`.
bool IsAligned(const Value& matrix, std::int64_t bytes) {
  std::int64_t pitch = 0;
  for (std::size_t i = 0; i < matrix.shape.size(); ++i) {
    const bool counts = matrix.shape[i] > 1 && matrix.strides[i] > 1;
    pitch = counts && (pitch == 0 || matrix.strides[i] < pitch) ? matrix.strides[i] : pitch;
  }
  return pitch * ElementBytes(matrix.dtype) % bytes == 0;
}

bool IsAlignedProduct(const Graph& graph, OpId id, std::int64_t bytes) {
  const auto factors = FindFactors(graph, id);
  const ValueId result = graph.op(id).first_output();
  return (result.is_none() || IsAligned(graph.value(result), bytes)) &&
         (!factors || (IsAligned(graph.value(factors->left), bytes) &&
                       IsAligned(graph.value(factors->right), bytes)));
}

/// Share of the peak that the op's products reach. Convolutions bring their operands into the
/// layout that they need.
double Efficiency(const Graph& graph, OpId id, const GpuSpec& gpu) {
  const ProductRates& rates = gpu.kernels->product;
  const auto shape = FindProduct(graph, id);
  if (!shape) {
    return gpu.matmul_efficiency;
  }
  if (graph.value(graph.op(id).inputs.front()).dtype == DType::kFloat32) {
    return rates.float32;
  }
  if (!IsAlignedProduct(graph, id, kAlignment)) {
    return IsAlignedProduct(graph, id, kHalfAlignment) ? rates.half_aligned : rates.unaligned;
  }
  return gpu.matmul_efficiency *
         ProductUse(shape->products, shape->rows, shape->columns, rates.tile, gpu.multiprocessors);
}

std::int64_t DivideUp(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

double ProductUse(std::int64_t products,
                  std::int64_t rows,
                  std::int64_t columns,
                  double tile,
                  int multiprocessors) {
  constexpr std::array<std::int64_t, 3> kRows = {64, 128, 256};
  constexpr std::array<std::int64_t, 7> kColumns = {64, 96, 128, 160, 192, 256, 320};
  constexpr std::int64_t kLargest = 320 * 128;  // elements whose sums a multiprocessor holds
  const auto speed = [&](std::int64_t a, std::int64_t b) {
    return 1 / (1 + tile / static_cast<double>(a) + tile / static_cast<double>(b));
  };
  const double whole = static_cast<double>(products * rows * columns);
  double best = 0;
  for (const std::int64_t a : kRows) {
    for (const std::int64_t b : kColumns) {
      if (a * b > kLargest) {
        continue;
      }
      const std::int64_t tiles = products * DivideUp(rows, a) * DivideUp(columns, b);
      const std::int64_t waves = DivideUp(tiles, multiprocessors);
      const auto room = static_cast<double>(waves * multiprocessors * a * b);
      best = std::max(best, speed(a, b) / speed(128, 256) * whole / room);
    }
  }
  return best;
}

double ProductSeconds(const Graph& graph, OpId id, const GpuSpec& gpu) {
  const KernelRates& kernels = *gpu.kernels;
  const ValueId result = graph.op(id).first_output();
  const Bytes written = result.is_none() ? Bytes(0) : graph.value(result).bytes();
  const Bytes read = CountBytes(graph, id) - written;
  return std::max(SecondsAtPeak(graph, id, gpu) / Efficiency(graph, id, gpu),
                  TransferSeconds(read, gpu, kernels.plain)) +
         TransferSeconds(written, gpu, kernels.plain) + kernels.product.start.seconds();
}

}  // namespace dcsim
