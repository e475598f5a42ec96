#include "model/cost/softmax_time.h"

#include <algorithm>
#include <bit>

#include "model/cost/kernel_models.h"
#include "model/cost/roofline.h"
#include "model/machine/gpu.h"

namespace dcsim {
namespace {

struct SoftmaxWork {
  const KernelTraits& of;
  const GpuSpec& gpu;
  std::int64_t row;  // elements

  double CountRows() const {
    return of.elements() / static_cast<double>(std::max<std::int64_t>(row, 1));
  }

  /// Rows too long for a warp that fill no multiple of 16 bytes: a block of 1,024 threads each.
  double UnevenRows() const {
    constexpr std::int64_t kVector = 16;  // bytes
    constexpr int kBlocks = 2;            // on a multiprocessor
    const bool even = row * ElementBytes(of.result->dtype) % kVector == 0;
    return even || of.backward ? 0
                               : CountRows() * gpu.kernels->softmax.block.seconds() /
                                     (gpu.multiprocessors * kBlocks);
  }

  /// In half precision a warp computes longer than memory takes for its row, which it fills up to a
  /// power of two.
  double ShortRows() const {
    if (of.backward || ElementBytes(of.inputs.front()->dtype) > 2) {
      return 0;
    }
    const auto padded = std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(row, 1)));
    return CountRows() * static_cast<double>(padded) /
           gpu.kernels->softmax.short_elements_per_second;
  }

  /// Rows of 1,024 elements or fewer lie in a warp's registers, of 2,048 with fewer warps.
  double Rows() const {
    constexpr std::int64_t kShort = 1024;
    constexpr std::int64_t kMiddle = 2048;
    const SoftmaxRates& rates = gpu.kernels->softmax;
    const double plain = gpu.kernels->plain;
    const double long_rows = of.backward ? rates.long_rows_backward : rates.long_rows;
    const double share = row <= kShort    ? plain
                         : row <= kMiddle ? (of.backward ? plain : rates.middle_rows)
                                          : long_rows;
    return std::max(TransferSeconds(of.bytes, gpu, share),
                    row > kShort ? UnevenRows() : ShortRows());
  }

  /// One element of each row of what is read, as a mask has it: sums along rows of booleans.
  double RowsOfBooleans() const {
    const ReductionRates& rates = gpu.kernels->reduction;
    return TransferSeconds(Bytes(of.inputs.front()->numel()), gpu, rates.share) +
           rates.start.seconds();
  }

  /// Which elements are masked, which rows have no others, and zeros in those.
  double Masking() const {
    const Bytes masked(of.result->numel() * (ElementBytes(of.result->dtype) + 1));
    return TransferSeconds(masked, gpu, gpu.kernels->plain) + RowsOfBooleans() +
           of.elements() / gpu.kernels->elements_per_second.alike;
  }
};

}  // namespace

std::optional<double> SoftmaxSeconds(const KernelTraits& of, const GpuSpec& gpu) {
  const bool logarithm = of.family == KernelFamily::kLogSoftmax;
  const bool safe = of.family == KernelFamily::kSafeSoftmax;
  if (of.family != KernelFamily::kSoftmax && !logarithm && !safe) {
    return std::nullopt;
  }
  const SoftmaxWork work{of, gpu, of.result->shape.empty() ? 1 : of.result->shape.back()};
  const double seconds = work.Rows();
  if (of.backward && !logarithm) {
    // Gradient times result, in a kernel before.
    return seconds + TransferSeconds(of.bytes, gpu, gpu.kernels->plain);
  }
  return safe ? seconds + work.Masking() : seconds;
}

}  // namespace dcsim
