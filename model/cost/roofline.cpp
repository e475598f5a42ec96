#include "model/cost/roofline.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "model/base/error.h"
#include "model/cost/op_flops.h"

namespace dcsim {
namespace {

// Bytes at whose multiples rows begin: what bulk loads ask, and the least that asynchronous ones
// do.
constexpr std::int64_t kAlignment = 16;
constexpr std::int64_t kHalfAlignment = 4;

double Efficiency(OpClass op_class, const GpuSpec& gpu) {
  switch (op_class) {
    case OpClass::kAttention:
      return gpu.attention_efficiency;
    case OpClass::kAttentionBackward:
      return gpu.attention_backward_efficiency;
    default:
      return gpu.matmul_efficiency;
  }
}

double SecondsAtPeak(const Graph& graph, OpId id, const GpuSpec& gpu) {
  const std::int64_t flops = CountFlops(graph, id);
  if (flops == 0) {
    return 0;
  }
  const DType dtype = graph.value(graph.op(id).inputs.front()).dtype;
  const double peak = gpu.MatmulFlops(dtype);
  if (peak == 0) {
    throw Error("gpu " + gpu.name + ": matmul: no rate for " + std::string(DTypeName(dtype)) +
                ", which " + std::string(graph.target(id)) + " needs");
  }
  return static_cast<double>(flops) / peak;
}

double AccessSeconds(Bytes bytes, const GpuSpec& gpu, MemoryAccess access) {
  const double share = gpu.kernels ? gpu.kernels->access[static_cast<std::size_t>(access)]
                                   : gpu.bandwidth_efficiency;
  return static_cast<double>(bytes.count()) /
         (static_cast<double>(gpu.memory_bandwidth.count()) * share);
}

/// Whether rows (or columns, whichever lie together) of a matrix begin at multiples of `bytes`.
bool IsAligned(const Value& matrix, std::int64_t bytes) {
  std::int64_t pitch = 0;
  for (std::size_t i = 0; i < matrix.shape.size(); ++i) {
    const bool counts = matrix.shape[i] > 1 && matrix.strides[i] > 1;
    pitch = counts && (pitch == 0 || matrix.strides[i] < pitch) ? matrix.strides[i] : pitch;
  }
  return pitch * ElementBytes(matrix.dtype) % bytes == 0;
}

bool IsAlignedProduct(const Graph& graph, const Op& op, std::int64_t bytes) {
  const std::size_t factors = std::min<std::size_t>(2, op.inputs.size());
  const ValueId result = op.first_output();
  return (result.is_none() || IsAligned(graph.value(result), bytes)) &&
         std::all_of(op.inputs.end() - static_cast<std::ptrdiff_t>(factors), op.inputs.end(),
                     [&](ValueId factor) { return IsAligned(graph.value(factor), bytes); });
}

/// Share of the peak that a product reaches. Convolutions bring their operands into the layout that
/// they need.
double ProductEfficiency(const Graph& graph, OpId id, const GpuSpec& gpu) {
  const Op& op = graph.op(id);
  if (graph.target(id).starts_with("aten::convolution") ||
      IsAlignedProduct(graph, op, kAlignment)) {
    return gpu.matmul_efficiency;
  }
  return IsAlignedProduct(graph, op, kHalfAlignment) ? gpu.kernels->half_aligned_product
                                                     : gpu.kernels->unaligned_product;
}

double ProductSeconds(const Graph& graph, OpId id, const GpuSpec& gpu) {
  const KernelRates& kernels = *gpu.kernels;
  const Op& op = graph.op(id);
  const ValueId result = op.first_output();
  const Bytes written = result.is_none() ? Bytes(0) : graph.value(result).bytes();
  const Bytes read = CountBytes(graph, id) - written;
  return std::max(SecondsAtPeak(graph, id, gpu) / ProductEfficiency(graph, id, gpu),
                  AccessSeconds(read, gpu, MemoryAccess::kPlain)) +
         AccessSeconds(written, gpu, MemoryAccess::kPlain) + kernels.product_start.seconds();
}

constexpr std::int64_t kAttentionBlock = 128;  // queries, or keys

/// Of all blocks of queries with all of keys, those that a causal mask leaves whole or in part.
std::int64_t BlockPairs(std::int64_t own, std::int64_t others, bool causal) {
  return causal ? own * (own + 1) / 2 : own * others;
}

/// What a backward does before and behind its products, in kernels of their own: sums of output
/// times gradient (which clear the query's gradient in float32), that gradient's conversion, and
/// sums over the query heads of one key head.
double AttentionBackwardSeconds(const AttentionShape& of,
                                std::int64_t element,
                                const GpuSpec& gpu) {
  constexpr std::int64_t kFloat = 4;  // bytes
  const std::int64_t blocks = (of.queries + kAttentionBlock - 1) / kAttentionBlock;
  const std::int64_t queries = of.batch * of.heads * blocks * kAttentionBlock * of.head_dim;
  double seconds =
      AccessSeconds(Bytes(queries * (2 * element + kFloat)), gpu, MemoryAccess::kPlain) +
      AccessSeconds(Bytes(queries * (kFloat + element)), gpu, MemoryAccess::kConverting);
  if (of.key_heads < of.heads) {
    const std::int64_t keys = of.batch * of.keys * of.head_dim * (of.heads + of.key_heads);
    seconds += AccessSeconds(Bytes(2 * keys * element), gpu, MemoryAccess::kColumnReduction);
  }
  return seconds;
}

double AttentionSeconds(const Graph& graph, OpId id, const AttentionShape& of, const GpuSpec& gpu) {
  const auto blocks_of = [](std::int64_t length) {
    return (length + kAttentionBlock - 1) / kAttentionBlock;
  };
  const AttentionRates& rates =
      of.backward ? gpu.kernels->attention_backward : gpu.kernels->attention;
  const std::int64_t own = blocks_of(of.backward ? of.keys : of.queries);
  const std::int64_t others = blocks_of(of.backward ? of.queries : of.keys);
  const auto heads = static_cast<double>(of.batch * of.heads);
  const DType dtype = graph.value(graph.op(id).inputs.front()).dtype;
  const double processor = SecondsAtPeak(graph, id, gpu) /
                           static_cast<double>(CountFlops(graph, id)) *
                           static_cast<double>(gpu.multiprocessors) /
                           Efficiency(ClassifyOp(graph, id), gpu);  // seconds a FLOP
  const std::int64_t products = of.backward ? 5 : 2;
  const double pair = processor * static_cast<double>(2 * products * of.head_dim * kAttentionBlock *
                                                      kAttentionBlock);
  const double block = rates.block.seconds() + (of.causal ? rates.diagonal.seconds() : 0);
  const double shared = heads * (static_cast<double>(own) * block +
                                 static_cast<double>(BlockPairs(own, others, of.causal)) * pair);
  const double longest = block + static_cast<double>(others) * pair;
  return shared / static_cast<double>(gpu.multiprocessors) + rates.tail * longest +
         (of.backward ? AttentionBackwardSeconds(of, ElementBytes(dtype), gpu) : 0);
}

/// The largest tensor that an op reads, or None().
ValueId LargestInput(const Graph& graph, const Op& op) {
  const auto smaller = [&](ValueId a, ValueId b) {
    return graph.value(a).numel() < graph.value(b).numel();
  };
  const auto largest = std::max_element(op.inputs.begin(), op.inputs.end(), smaller);
  return largest == op.inputs.end() ? ValueId::None() : *largest;
}

/// Dense in some order of its dimensions.
bool IsDense(const Value& value) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;  // stride, length
  for (std::size_t i = 0; i < value.shape.size(); ++i) {
    if (value.shape[i] > 1) {
      dimensions.emplace_back(value.strides[i], value.shape[i]);
    }
  }
  std::sort(dimensions.begin(), dimensions.end());
  std::int64_t elements = 1;
  for (const auto& [stride, length] : dimensions) {
    if (stride != elements) {
      return false;
    }
    elements *= length;
  }
  return true;
}

bool HasLayoutOf(const Value& value, const Value& other) {
  for (std::size_t i = 0; i < value.shape.size() && i < other.shape.size(); ++i) {
    if (value.shape[i] > 1 && value.strides[i] != other.strides[i]) {
      return false;
    }
  }
  return value.shape.size() == other.shape.size();
}

bool IsInteger(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32;
}

/// An op that makes each element of its result from one of each operand. Integers beside floating
/// point are indices: a loss' targets, which are few.
MemoryAccess ElementwiseAccess(const Graph& graph, const Op& op, const Value& result) {
  bool by_element = !IsDense(result);
  bool converts = false;
  bool picks = false;
  bool has_whole = false;
  for (const ValueId input : op.inputs) {
    const Value& value = graph.value(input);
    if (value.numel() <= 1) {
      continue;
    }
    if (value.dtype != result.dtype) {
      const bool index = IsInteger(value.dtype) && !IsInteger(result.dtype);
      (index ? picks : converts) = true;
      continue;
    }
    const bool whole = value.numel() == result.numel();
    has_whole = has_whole || whole;
    by_element = by_element || !whole || !IsDense(value) || !HasLayoutOf(value, result);
  }
  if (converts || (picks && !has_whole)) {
    return MemoryAccess::kConverting;
  }
  return by_element ? MemoryAccess::kByElement : MemoryAccess::kPlain;
}

/// What an op's bytes take, read and written this way.
double MemorySeconds(const Graph& graph, OpId id, const GpuSpec& gpu, MemoryAccess access) {
  const Bytes bytes = CountBytes(graph, id);
  if (access != MemoryAccess::kByElement) {
    return AccessSeconds(bytes, gpu, access);
  }
  const auto written = static_cast<double>(graph.value(graph.op(id).first_output()).numel());
  return std::max(AccessSeconds(bytes, gpu, MemoryAccess::kPlain),
                  written / gpu.kernels->elements_per_second);
}

/// Bytes that cat copies in one piece, of the operand that has least of them: its elements from the
/// dimension on that is concatenated.
std::int64_t ShortestRun(const Graph& graph, const Op& op) {
  std::int64_t shortest = INT64_MAX;
  const ValueId made = op.first_output();
  for (const ValueId input : op.inputs) {
    const Value& part = graph.value(input);
    std::int64_t run = ElementBytes(part.dtype);
    std::size_t dimension = part.shape.size();
    const bool comparable = !made.is_none() && graph.value(made).shape.size() == part.shape.size();
    while (comparable && dimension > 0) {
      --dimension;
      run *= part.shape[dimension];
      if (part.shape[dimension] != graph.value(made).shape[dimension]) {
        break;
      }
    }
    shortest = std::min(shortest, run);
  }
  return shortest;
}

}  // namespace

MemoryAccess AccessOf(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  const std::string_view target = graph.target(id);
  if (target == "aten::cat") {
    constexpr std::int64_t kLongRun = 512;  // bytes
    return ShortestRun(graph, op) < kLongRun ? MemoryAccess::kConcatenation : MemoryAccess::kPlain;
  }
  if (target.find("softmax_backward") != std::string_view::npos) {
    return MemoryAccess::kSoftmaxBackward;
  }
  if (target == "aten::native_layer_norm_backward") {
    return MemoryAccess::kLayerNormBackward;
  }
  if (target.find("norm") != std::string_view::npos ||
      target.find("softmax") != std::string_view::npos) {
    return MemoryAccess::kNormalization;
  }
  const ValueId made = op.first_output();
  const ValueId largest = LargestInput(graph, op);
  if (made.is_none() || largest.is_none()) {
    return MemoryAccess::kPlain;
  }
  const Value& result = graph.value(made);
  const Value& read = graph.value(largest);
  constexpr std::int64_t kReduces = 4;  // elements read for one written, at least
  if (read.numel() < kReduces * result.numel() || read.shape.empty()) {
    return ElementwiseAccess(graph, op, result);
  }
  const bool keeps_rows =
      !result.shape.empty() && result.numel() > 1 && result.shape.back() == read.shape.back();
  constexpr std::int64_t kNarrow = 512;  // elements that are left
  if (!keeps_rows) {
    return MemoryAccess::kRowReduction;
  }
  return result.numel() <= kNarrow ? MemoryAccess::kNarrowReduction
                                   : MemoryAccess::kColumnReduction;
}

Duration RooflineTime(const Graph& graph, OpId id, const GpuSpec& gpu) {
  const OpClass op_class = ClassifyOp(graph, id);
  const auto attention = gpu.kernels ? FindAttention(graph, id) : std::nullopt;
  double seconds = 0;
  if (gpu.kernels && op_class == OpClass::kMatmul) {
    seconds = ProductSeconds(graph, id, gpu);
  } else if (attention && CountFlops(graph, id) > 0) {
    seconds = AttentionSeconds(graph, id, *attention, gpu);
  } else {
    const bool streams = gpu.kernels && op_class == OpClass::kStreaming;
    seconds = std::max(
        SecondsAtPeak(graph, id, gpu) / Efficiency(op_class, gpu),
        MemorySeconds(graph, id, gpu, streams ? AccessOf(graph, id) : MemoryAccess::kPlain));
  }
  const Duration time = Duration::FromNs(static_cast<std::int64_t>(std::ceil(seconds * 1e9)));
  return std::max(time, gpu.shortest_kernel);
}

}  // namespace dcsim
