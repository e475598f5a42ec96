#include "model/cost/param_alignment.h"

#include <algorithm>
#include <cmath>

#include "model/base/scaled.h"
#include "model/cost/convolution_time.h"
#include "model/cost/kernel_models.h"
#include "model/cost/product_time.h"
#include "model/cost/roofline.h"
#include "model/cost/unaligned_weight_time.h"
#include "model/graph/sharding.h"

namespace dcsim {
namespace {

constexpr std::int64_t kNormAlignment = 8;  // four elements
constexpr std::int64_t kHalfPrecision = 2;  // bytes

Duration FromSeconds(double seconds) {
  return NearestNs(seconds * 1e9);
}

double Elements(const Value& value) {
  return static_cast<double>(value.numel());
}

/// A layer norm whose weight or bias begins where no four elements do.
double UnalignedNorm(const KernelTraits& of, const GpuSpec& gpu) {
  const UnalignedNormRates& rates = gpu.kernels->unaligned_layer_norm;
  const bool told = of.outputs.size() > 1 && of.outputs[1] != nullptr;
  return (told ? Elements(*of.outputs[1]) / rates.rows_per_second : 0) +
         Elements(*of.inputs.front()) / rates.elements_per_second;
}

}  // namespace

Duration ParamAlignment::Delay(const KernelTraits& of, Duration time, const GpuSpec& gpu) const {
  if (!gpu.kernels || of.inputs.empty() ||
      ElementBytes(of.inputs.front()->dtype) != kHalfPrecision) {
    return Duration();
  }
  const std::int64_t alignment = shifts_.AlignmentOf(of.id);
  if (alignment == kTensorAlignment) {
    return Duration();
  }
  if (of.product) {
    if (!IsAlignedProduct(of)) {
      return Duration();
    }
    const double share = SlowProductShare(of, alignment >= kHalfRowAlignment, gpu);
    const double seconds = gpu.kernels->product.start.seconds() + SecondsAtPeak(of, gpu) / share;
    return FromSeconds(std::max(seconds - time.seconds(), 0.0));
  }
  if (of.family == KernelFamily::kLayerNorm && !of.backward && of.shown) {
    const double seconds = alignment < kNormAlignment ? UnalignedNorm(of, gpu) : 0;
    return FromSeconds(std::max(seconds - time.seconds(), 0.0));
  }
  if (of.family == KernelFamily::kEmbedding) {
    const double seconds = of.elements() / gpu.kernels->unaligned_lookups;
    return FromSeconds(std::max(seconds - time.seconds(), 0.0));
  }
  return ConvolutionDelay(of, time, gpu);
}

Duration ParamAlignment::ConvolutionDelay(const KernelTraits& of,
                                          Duration time,
                                          const GpuSpec& gpu) const {
  const auto weight = FindSingleKernel(of);
  if (!weight || shifts_.Of(*weight) == 0) {
    return Duration();
  }
  // Of a backward the input's gradient needs the weight, the weight's does not.
  const auto made = [&](std::size_t i) {
    return i < of.outputs.size() && of.outputs[i] != nullptr;
  };
  if (of.backward && !made(0)) {
    return Duration();
  }
  const double passes = of.backward && made(1) ? 2 : 1;
  const double delay = UnalignedWeightSeconds(of, gpu) - time.seconds() / passes;
  return FromSeconds(std::max(delay, 0.0));
}

}  // namespace dcsim
