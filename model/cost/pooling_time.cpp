#include "model/cost/pooling_time.h"

#include <algorithm>

#include "model/cost/element_time.h"
#include "model/cost/kernel_models.h"
#include "model/machine/gpu.h"

namespace dcsim {
namespace {

/// Every element of every window is read, one by one; the first list says how wide windows are.
/// Windows end where the tensor does.
double WindowElements(const KernelTraits& of) {
  const Value& pooled = of.backward ? *of.result : *of.inputs.front();
  double window = 1;
  for (std::size_t i = 0; of.numbers != nullptr && i < of.numbers->size(); ++i) {
    const std::size_t behind = of.numbers->size() - i;  // dimensions from this one on
    const std::int64_t length =
        behind <= pooled.shape.size() ? pooled.shape[pooled.shape.size() - behind] : 1;
    window *= static_cast<double>(std::min((*of.numbers)[i], length));
  }
  const Value& means = of.backward ? *of.inputs.front() : *of.result;
  return static_cast<double>(means.numel()) * window;
}

}  // namespace

std::optional<double> PoolingSeconds(const KernelTraits& of, const GpuSpec& gpu) {
  const PoolingRates& rates = gpu.kernels->pooling;
  switch (of.family) {
    case KernelFamily::kMeanPool:
      return WindowElements(of) / (of.backward ? rates.backward : rates.forward);
    case KernelFamily::kMaximumPool:
      return WindowElements(of) / (of.backward ? rates.maximum_backward : rates.maximum);
    case KernelFamily::kUnfold:  // windows into columns
      return MakeContiguousSeconds(*of.inputs.front(), gpu) + of.elements() / rates.unfolded;
    case KernelFamily::kFold:  // columns added up into images
      return MakeContiguousSeconds(*of.inputs.front(), gpu) +
             static_cast<double>(of.inputs.front()->numel()) / rates.folded;
    default:
      return std::nullopt;
  }
}

}  // namespace dcsim
