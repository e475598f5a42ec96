#include "model/cost/param_alignment.h"

#include <algorithm>
#include <cmath>

#include "model/base/scaled.h"
#include "model/cost/convolution_time.h"
#include "model/cost/op_flops.h"
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

double Elements(const Graph& graph, ValueId value) {
  return static_cast<double>(graph.value(value).numel());
}

/// A layer norm whose weight or bias begins where no four elements do.
double UnalignedNorm(const Graph& graph, const Op& op, const GpuSpec& gpu) {
  const UnalignedNormRates& rates = gpu.kernels->unaligned_layer_norm;
  const bool told = op.outputs.size() > 1 && !op.outputs[1].is_none();
  return (told ? Elements(graph, op.outputs[1]) / rates.rows_per_second : 0) +
         Elements(graph, op.inputs.front()) / rates.elements_per_second;
}

}  // namespace

Duration ParamAlignment::Delay(const Graph& graph,
                               OpId id,
                               Duration time,
                               const GpuSpec& gpu) const {
  const Op& op = graph.op(id);
  if (!gpu.kernels || op.inputs.empty() ||
      ElementBytes(graph.value(op.inputs.front()).dtype) != kHalfPrecision) {
    return Duration();
  }
  const std::int64_t alignment = shifts_.AlignmentOf(id);
  if (alignment == kTensorAlignment) {
    return Duration();
  }
  if (FindFactors(graph, id)) {
    if (!IsAlignedProduct(graph, id)) {
      return Duration();
    }
    const double share = SlowProductShare(graph, id, alignment >= kHalfRowAlignment, gpu);
    const double seconds =
        gpu.kernels->product.start.seconds() + SecondsAtPeak(graph, id, gpu) / share;
    return FromSeconds(std::max(seconds - time.seconds(), 0.0));
  }
  if (graph.target(id) == "aten::native_layer_norm") {
    const double seconds = alignment < kNormAlignment ? UnalignedNorm(graph, op, gpu) : 0;
    return FromSeconds(std::max(seconds - time.seconds(), 0.0));
  }
  if (graph.target(id) == "aten::embedding") {
    const double seconds = Elements(graph, op.first_output()) / gpu.kernels->unaligned_lookups;
    return FromSeconds(std::max(seconds - time.seconds(), 0.0));
  }
  return ConvolutionDelay(graph, id, time, gpu);
}

Duration ParamAlignment::ConvolutionDelay(const Graph& graph,
                                          OpId id,
                                          Duration time,
                                          const GpuSpec& gpu) const {
  const Op& op = graph.op(id);
  const auto weight = FindSingleKernel(graph, id);
  if (!weight || shifts_.Of(*weight) == 0) {
    return Duration();
  }
  // Of a backward the input's gradient needs the weight, the weight's does not.
  const bool backward = graph.target(id).ends_with("_backward");
  const auto made = [&](std::size_t i) {
    return i < op.outputs.size() && !op.outputs[i].is_none();
  };
  if (backward && !made(0)) {
    return Duration();
  }
  const double passes = backward && made(1) ? 2 : 1;
  const double delay = UnalignedWeightSeconds(graph, id, gpu) - time.seconds() / passes;
  return FromSeconds(std::max(delay, 0.0));
}

}  // namespace dcsim
