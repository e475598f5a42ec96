#include "model/cost/param_alignment.h"

#include <algorithm>
#include <cmath>

#include "model/cost/op_flops.h"
#include "model/cost/product_time.h"
#include "model/cost/roofline.h"
#include "model/graph/sharding.h"

namespace dcsim {
namespace {

constexpr std::int64_t kHalfAlignment = 4;
constexpr std::int64_t kHalfPrecision = 2;  // bytes

Duration FromSeconds(double seconds) {
  return Duration::FromNs(std::llround(seconds * 1e9));
}

}  // namespace

ParamAlignment::ParamAlignment(const Graph& graph, const ScheduleOptions& options, int ranks)
    : begins_(graph.storages.size()) {
  if (options.stage == 3) {
    return;
  }
  for (const FlatGroup& group : LaidOutGroups(graph, options, ranks)) {
    const std::vector<std::int64_t> offsets = WeightOffsets(graph, group, options, ranks);
    for (std::size_t i = 0; i < group.params.size(); ++i) {
      begins_[graph.storage_of(graph.param(group.params[i]).value).index()] = offsets[i];
    }
  }
}

std::int64_t ParamAlignment::Shift(const Graph& graph, ValueId value) const {
  const std::int64_t begin = begins_[graph.storage_of(value).index()];
  return begin * ElementBytes(graph.value(value).dtype) % kTensorAlignment;
}

Duration ParamAlignment::Delay(const Graph& graph,
                               OpId id,
                               Duration time,
                               const GpuSpec& gpu) const {
  const Op& op = graph.op(id);
  if (!gpu.kernels || op.inputs.empty() ||
      ElementBytes(graph.value(op.inputs.front()).dtype) != kHalfPrecision) {
    return Duration();
  }
  if (const auto factors = FindFactors(graph, id)) {
    const std::int64_t left = Shift(graph, factors->left);
    const std::int64_t right = Shift(graph, factors->right);
    if ((left == 0 && right == 0) || !IsAlignedProduct(graph, id)) {
      return Duration();
    }
    const bool half = left % kHalfAlignment == 0 && right % kHalfAlignment == 0;
    const ProductRates& rates = gpu.kernels->product;
    const double times = gpu.matmul_efficiency / (half ? rates.half_aligned : rates.unaligned);
    return FromSeconds(time.seconds() * (times - 1));
  }
  if (graph.target(id) == "aten::native_layer_norm") {
    return NormDelay(graph, op, time, gpu);
  }
  const auto weight = FindSingleKernel(graph, id);
  if (!weight || Shift(graph, *weight) == 0) {
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
  const ConvolutionRates& rates = gpu.kernels->convolution;
  const double products = backward && made(1) ? 2 : 1;
  return FromSeconds(SecondsAtPeak(graph, id, gpu) / products *
                     (1 / rates.few_channels - 1 / (backward ? rates.backward : rates.forward)));
}

Duration ParamAlignment::NormDelay(const Graph& graph,
                                   const Op& op,
                                   Duration time,
                                   const GpuSpec& gpu) const {
  constexpr std::int64_t kVector = 8;  // bytes, four elements
  const bool shifted = std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId input) {
    return Shift(graph, input) % kVector != 0;
  });
  if (!shifted || op.outputs.size() < 2 || op.outputs[1].is_none()) {
    return Duration();
  }
  const UnalignedNormRates& rates = gpu.kernels->unaligned_layer_norm;
  const auto rows = static_cast<double>(graph.value(op.outputs[1]).numel());
  const auto elements = static_cast<double>(graph.value(op.inputs.front()).numel());
  const double seconds = rows / rates.rows_per_second + elements / rates.elements_per_second;
  return FromSeconds(std::max(seconds - time.seconds(), 0.0));
}

}  // namespace dcsim
