#include "model/cost/kernel_models.h"

#include <algorithm>

namespace dcsim {
namespace {

double Seconds(const KernelTraits& of, const GpuSpec& gpu) {
  std::optional<double> seconds;
  for (const KernelModel* model = kKernelModels.begin(); !seconds; ++model) {
    if (gpu.kernels || !model->fitted) {
      seconds = model->seconds(of, gpu);
    }
  }
  return *seconds;
}

template <typename Rates>
std::shared_ptr<const Rates> ReadSection(ObjectReader& section) {
  auto rates = std::make_shared<Rates>();
  ReadRates(section, *rates);
  return rates;
}

}  // namespace

std::shared_ptr<const KernelRates> ReadKernelRates(ObjectReader& kernels) {
  return ReadSection<KernelRates>(kernels);
}

std::shared_ptr<const TritonRates> ReadTritonRates(ObjectReader& triton) {
  return ReadSection<TritonRates>(triton);
}

Duration KernelTime(const KernelTraits& of, const GpuSpec& gpu) {
  constexpr double kRounding = 1e-6;  // ns, of sums that are whole
  const Duration time = RoundedUpNs(Seconds(of, gpu) * 1e9 - kRounding);
  // Triton kernels have a start of their own.
  return of.triton != nullptr ? time : std::max(time, gpu.shortest_kernel);
}

}  // namespace dcsim
