#include "model/cost/reduction_time.h"

#include <algorithm>

#include "model/cost/kernel_models.h"
#include "model/cost/reduce_shape.h"
#include "model/cost/roofline.h"
#include "model/machine/gpu.h"

namespace dcsim {
namespace {

/// Each value brings what lies beside it, of which its neighbours make nothing.
double SparseReading(const ReduceShape& shape, const GpuSpec& gpu) {
  constexpr Bytes kSector(32);
  return shape.apart < kSector ? 0
                               : TransferSeconds(kSector * (shape.outputs * shape.values), gpu, 1);
}

}  // namespace

std::optional<double> ReductionSeconds(const KernelTraits& of, const GpuSpec& gpu) {
  const auto shape = FindReduceShape(of, gpu.multiprocessors);
  if (!shape) {
    return std::nullopt;
  }
  constexpr std::int64_t kThreads = 2048;  // of a multiprocessor
  constexpr std::int64_t kAtATime = 4;     // values of a thread
  const ReductionRates& rates = gpu.kernels->reduction;
  const double waves = static_cast<double>(shape->blocks * shape->threads) /
                       static_cast<double>(gpu.multiprocessors * kThreads);
  const std::int64_t rounds = DivideUp(shape->values_per_thread, kAtATime);
  const double joining =
      shape->parts == 1
          ? 0
          : rates.stage.seconds() + rates.part.seconds() * static_cast<double>(shape->parts);
  return rates.start.seconds() + joining +
         std::max({TransferSeconds(of.bytes, gpu, rates.share) + waves * rates.wave.seconds(),
                   static_cast<double>(rounds) * rates.values.seconds(),
                   SparseReading(*shape, gpu)});
}

}  // namespace dcsim
