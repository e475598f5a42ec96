#include "model/cost/attention_time.h"

#include "model/cost/roofline.h"

namespace dcsim {
namespace {

constexpr std::int64_t kBlock = 128;  // queries, or keys

std::int64_t BlocksOf(std::int64_t length) {
  return (length + kBlock - 1) / kBlock;
}

/// Of all blocks of queries with all of keys, those that a causal mask leaves whole or in part.
std::int64_t BlockPairs(std::int64_t own, std::int64_t others, bool causal) {
  return causal ? own * (own + 1) / 2 : own * others;
}

/// What a backward does before and behind its products, in kernels of their own: sums of output
/// times gradient (which clear the query's gradient in float32), that gradient's conversion, and
/// sums over the query heads of one key head.
double BackwardEnds(const AttentionShape& of, std::int64_t element, const GpuSpec& gpu) {
  constexpr std::int64_t kFloat = 4;  // bytes
  const KernelRates& kernels = *gpu.kernels;
  const std::int64_t queries = of.batch * of.heads * BlocksOf(of.queries) * kBlock * of.head_dim;
  double seconds =
      TransferSeconds(Bytes(queries * (2 * element + kFloat)), gpu, kernels.plain) +
      TransferSeconds(Bytes(queries * (kFloat + element)), gpu, kernels.attention_ends.conversion);
  if (of.key_heads < of.heads) {
    const std::int64_t keys = of.batch * of.keys * of.head_dim * (of.heads + of.key_heads);
    seconds += TransferSeconds(Bytes(2 * keys * element), gpu, kernels.attention_ends.head_sums);
  }
  return seconds;
}

/// Of the memory-efficient kernels: thread blocks of 64 queries (in the backward, keys) go over all
/// of the other side, whatever a mask leaves.
double EfficientSeconds(const Graph& graph, OpId id, const AttentionShape& of, const GpuSpec& gpu) {
  constexpr std::int64_t kNarrow = 128;
  constexpr std::int64_t kSide = 64;
  const EfficientAttentionRates& rates = gpu.kernels->efficient_attention;
  const bool wide = of.head_dim > kNarrow;
  const double share = of.backward ? (wide ? rates.wide_backward : rates.backward)
                                   : (wide ? rates.wide_forward : rates.forward);
  const std::int64_t queries = (of.queries + kSide - 1) / kSide;
  const std::int64_t keys = (of.keys + kSide - 1) / kSide;
  const double whole = static_cast<double>(queries * keys * kSide * kSide) /
                       static_cast<double>(of.queries * of.keys);
  const auto blocks = static_cast<double>(of.batch * of.heads * (of.backward ? keys : queries));
  const Duration block = of.backward ? rates.block_backward : rates.block;
  return SecondsAtPeak(graph, id, gpu) * whole / share +
         blocks * block.seconds() / static_cast<double>(gpu.multiprocessors);
}

}  // namespace

double AttentionSeconds(const Graph& graph, OpId id, const AttentionShape& of, const GpuSpec& gpu) {
  const DType dtype = graph.value(graph.op(id).inputs.front()).dtype;
  if (graph.target(id).find("efficient") != std::string_view::npos && ElementBytes(dtype) == 2) {
    return EfficientSeconds(graph, id, of, gpu);
  }
  const AttentionRates& rates =
      of.backward ? gpu.kernels->attention_backward : gpu.kernels->attention;
  const std::int64_t own = BlocksOf(of.backward ? of.keys : of.queries);
  const std::int64_t others = BlocksOf(of.backward ? of.queries : of.keys);
  const auto heads = static_cast<double>(of.batch * of.heads);
  const double efficiency =
      of.backward ? gpu.attention_backward_efficiency : gpu.attention_efficiency;
  const double processor = SecondsAtPeak(graph, id, gpu) /
                           static_cast<double>(CountFlops(graph, id)) *
                           static_cast<double>(gpu.multiprocessors) / efficiency;  // seconds a FLOP
  const std::int64_t products = of.backward ? 5 : 2;
  const double pair = processor * static_cast<double>(2 * products * of.head_dim * kBlock * kBlock);
  const double block = rates.block.seconds() + (of.causal ? rates.diagonal.seconds() : 0);
  const double shared = heads * (static_cast<double>(own) * block +
                                 static_cast<double>(BlockPairs(own, others, of.causal)) * pair);
  const double longest = block + static_cast<double>(others) * pair;
  return shared / static_cast<double>(gpu.multiprocessors) + rates.tail * longest +
         (of.backward ? BackwardEnds(of, ElementBytes(dtype), gpu) : 0);
}

}  // namespace dcsim
