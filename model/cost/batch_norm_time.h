#pragma once

#include <optional>

#include "model/cost/kernel_traits.h"
#include "model/cost/rate_fields.h"

namespace dcsim {

struct GpuSpec;

/// Batch norms, a thread block a channel (BatchNormSeconds).
struct BatchNormRates {
  Duration block;                  // of a thread block, besides its rounds
  Duration round;                  // of all its threads: until memory answers
  Duration cached_round;           // … or the L2 cache
  Duration busy_round;             // that a round keeps its neighbours on the multiprocessor
  double elements_per_second = 0;  // where channels are last
  double apart_per_second = 0;     // … of what is neither that nor contiguous

  static constexpr auto Fields() {
    return std::tuple(TimeField("block", &BatchNormRates::block),
                      TimeField("round", &BatchNormRates::round),
                      TimeField("cached_round", &BatchNormRates::cached_round),
                      TimeField("busy_round", &BatchNormRates::busy_round),
                      PositiveField("elements_per_second", &BatchNormRates::elements_per_second),
                      PositiveField("apart_per_second", &BatchNormRates::apart_per_second));
  }
};

/// What stands behind the sums of a batch norm.
struct BatchNormWriting {
  double elements_per_second = 0;
  double blocks_per_second = 0;  // thread blocks, however little they write

  static constexpr auto Fields() {
    return std::tuple(PositiveField("elements_per_second", &BatchNormWriting::elements_per_second),
                      PositiveField("blocks_per_second", &BatchNormWriting::blocks_per_second));
  }
};

/// Time of PyTorch's own batch norms (cuDNN's know no bfloat16), or of their backward, on a GPU
/// whose file has `kernels`, seconds; of [images, channels, places...]:
///
///   in evaluation            bytes (forward)
///   channels last, or rows   elements / rate, besides a start
///   neither these nor contiguous, or of a backward the gradient not: the same at another rate
///   contiguous               waves of thread blocks, one for each channel, and forward the writing
///
/// A block of up to 512 threads goes through its channel in rounds, each as long as memory takes to
/// answer, less where the L2 cache still holds the input, or as long as its neighbours on the
/// multiprocessor are busy. Writing is one element a thread at a time; rows that do not fill the
/// threads leave some idle, and short ones are as many thread blocks. A gradient that is not
/// contiguous costs a copy.
/// Source: aten/src/ATen/native/cuda/Normalization.cuh; docs/design/costs/elementwise.md.
std::optional<double> BatchNormSeconds(const KernelTraits& kernel, const GpuSpec& gpu);

}  // namespace dcsim
