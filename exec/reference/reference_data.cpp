#include "exec/reference/reference_data.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "exec/interpreter/argument_values.h"
#include "model/base/text.h"

namespace dcsim::exec {
namespace {

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ULL;
constexpr std::uint64_t kFirstFactor = 0xBF58476D1CE4E5B9ULL;
constexpr std::uint64_t kSecondFactor = 0x94D049BB133111EBULL;
constexpr std::int64_t kBlock = std::int64_t{1} << 26;  // elements made at once on a GPU

float WeightScale() {
  return static_cast<float>(std::sqrt(3.0) * 0.02);
}
float InputScale() {
  return static_cast<float>(std::sqrt(3.0));
}

/// (2 * (z >> 40) / 2^24 - 1) * scale; all but the last product is exact.
float Uniform(std::uint64_t word, float scale) {
  return (static_cast<float>(word >> 40) * 0x1p-23F - 1.0F) * scale;
}

at::Tensor UniformOnHost(std::uint64_t state, std::int64_t begin, std::int64_t count, float scale) {
  at::Tensor elements = at::empty({count}, at::kFloat);
  float* data = elements.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < count; ++i) {
    data[i] = Uniform(SplitMix64(state, static_cast<std::uint64_t>(begin + i)), scale);
  }
  return elements;
}

/// Unsigned shift of 64-bit words that PyTorch holds as signed.
at::Tensor ShiftRight(const at::Tensor& words, int bits) {
  const std::int64_t mask = static_cast<std::int64_t>(~std::uint64_t{0} >> bits);
  return words.bitwise_right_shift(bits).bitwise_and_(mask);
}

/// The same with PyTorch's integer kernels, whose products wrap.
at::Tensor UniformOnGpu(
    std::uint64_t state, std::int64_t begin, std::int64_t count, float scale, c10::Device device) {
  at::Tensor words =
      at::arange(begin + 1, begin + count + 1, at::TensorOptions().dtype(at::kLong).device(device));
  words.mul_(static_cast<std::int64_t>(kGolden)).add_(static_cast<std::int64_t>(state));
  words.bitwise_xor_(ShiftRight(words, 30)).mul_(static_cast<std::int64_t>(kFirstFactor));
  words.bitwise_xor_(ShiftRight(words, 27)).mul_(static_cast<std::int64_t>(kSecondFactor));
  words.bitwise_xor_(ShiftRight(words, 31));
  return ShiftRight(words, 40).to(at::kFloat).mul_(0x1p-23).sub_(1.0).mul_(scale);
}

}  // namespace

std::uint64_t SplitMix64(std::uint64_t state, std::uint64_t index) {
  std::uint64_t word = state + (index + 1) * kGolden;
  word = (word ^ (word >> 30)) * kFirstFactor;
  word = (word ^ (word >> 27)) * kSecondFactor;
  return word ^ (word >> 31);
}

std::string MicroStepPlace(int rank, int step, int micro_step) {
  return std::to_string(rank) + "/" + std::to_string(step) + "/" + std::to_string(micro_step);
}

at::Tensor ReferenceParam(const Graph& graph,
                          ParamId id,
                          std::uint64_t seed,
                          std::int64_t begin,
                          std::int64_t count,
                          c10::Device device) {
  const Param& param = graph.param(id);
  const Value& value = graph.value(param.value);
  const auto options = at::TensorOptions().dtype(ToScalarType(value.dtype)).device(device);
  if (value.shape.size() <= 1) {
    return at::full({count}, param.name.ends_with("bias") ? 0.0 : 1.0, options);
  }
  const std::uint64_t state = seed ^ HashBytes(param.name);
  if (device.is_cpu()) {
    return UniformOnHost(state, begin, count, WeightScale()).to(options);
  }
  at::Tensor elements = at::empty({count}, options);
  for (std::int64_t start = 0; start < count; start += kBlock) {
    const std::int64_t size = std::min(kBlock, count - start);
    elements.narrow(0, start, size)
        .copy_(UniformOnGpu(state, begin + start, size, WeightScale(), device));
  }
  return elements;
}

at::Tensor ReferenceInput(const Graph& graph,
                          std::size_t index,
                          std::uint64_t seed,
                          const std::string& place) {
  const Input& input = graph.inputs[index];
  const Value& value = graph.value(input.value);
  const std::uint64_t state = seed ^ HashBytes(index == 0 ? place : place + "/" + input.name);
  const std::int64_t count = value.numel();
  if (input.fill == FillKind::kUniform) {
    return UniformOnHost(state, 0, count, InputScale())
        .view(value.shape)
        .to(ToScalarType(value.dtype));
  }
  at::Tensor tokens = at::empty({count}, at::kLong);
  auto* data = tokens.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t word = SplitMix64(state, static_cast<std::uint64_t>(i));
    data[i] = static_cast<std::int64_t>(word % static_cast<std::uint64_t>(input.vocabulary));
  }
  return tokens.view(value.shape).to(ToScalarType(value.dtype));
}

std::vector<at::Tensor> ReferenceInputs(const Graph& graph,
                                        std::uint64_t seed,
                                        const std::string& place,
                                        c10::Device device) {
  std::vector<at::Tensor> inputs;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    inputs.push_back(ReferenceInput(graph, i, seed, place).to(device));
  }
  return inputs;
}

}  // namespace dcsim::exec
