#pragma once

#include "model/cost/kernel_traits.h"
#include "model/graph/param_shifts.h"
#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/machine/gpu.h"

namespace dcsim {

/// What it costs that parameters are shifted from the multiples of 16 bytes that fast kernels need
/// (model/graph/param_shifts.h; `align_tensors` puts those of odd size last), where no profile has
/// measured it.
class ParamAlignment {
 public:
  ParamAlignment(const Graph& graph, const ScheduleOptions& options, int ranks)
      : shifts_(graph, options, ranks) {}

  /// What an op takes besides `time`, measured or priced with its parameters at multiples of 16
  /// bytes: of a product what it takes at SlowProductShare, of a convolution with kernels of one
  /// element UnalignedWeightSeconds, of layer norms and embeddings what
  /// `unaligned_layer_norm` and `unaligned_lookups` say, of everything else nothing. Half precision
  /// only. Source: docs/design/costs/products.md.
  Duration Delay(const KernelTraits& of, Duration time, const GpuSpec& gpu) const;

 private:
  /// Of a convolution.
  Duration ConvolutionDelay(const KernelTraits& of, Duration time, const GpuSpec& gpu) const;

  ParamShifts shifts_;
};

}  // namespace dcsim
