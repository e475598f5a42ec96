#include "model/cost/attention_time.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <queue>
#include <vector>

#include "model/cost/kernel_models.h"
#include "model/cost/roofline.h"
#include "model/machine/gpu.h"

namespace dcsim {
namespace {

constexpr std::int64_t kBlock = 128;   // queries, or keys
constexpr std::int64_t kNarrow = 128;  // elements of a head; rates differ beyond

std::int64_t BlocksOf(std::int64_t length) {
  return DivideUp(length, kBlock);
}

/// Of all blocks of queries with all of keys, those that a causal mask leaves whole or in part.
std::int64_t BlockPairs(std::int64_t own, std::int64_t others, bool causal) {
  return causal ? own * (own + 1) / 2 : own * others;
}

/// What a backward over so many queries does before and behind its products, in kernels of their
/// own: sums of output times gradient (which clear the query's gradient in float32), that
/// gradient's conversion, and sums over the query heads of one key head.
double BackwardEnds(const AttentionShape& of,
                    std::int64_t queries,
                    std::int64_t element,
                    const AttentionEnds& ends,
                    const GpuSpec& gpu) {
  constexpr std::int64_t kFloat = 4;  // bytes
  const std::int64_t elements = of.batch * of.heads * queries * of.head_dim;
  double seconds =
      TransferSeconds(Bytes(elements * (2 * element + kFloat)), gpu, gpu.kernels->plain) +
      TransferSeconds(Bytes(elements * (kFloat + element)), gpu, ends.conversion);
  if (of.key_heads < of.heads) {
    const std::int64_t keys =
        of.batch * of.keys * (of.head_dim + of.value_dim) * (of.heads + of.key_heads);
    seconds += TransferSeconds(Bytes(keys * element), gpu, ends.head_sums);
  }
  return seconds;
}

/// Of the memory-efficient kernels: thread blocks of 64 queries (in the backward, keys) go over all
/// of the other side, whatever a mask leaves.
double EfficientSeconds(const KernelTraits& traits, const AttentionShape& of, const GpuSpec& gpu) {
  constexpr std::int64_t kSide = 64;
  const EfficientAttentionRates& rates = gpu.kernels->efficient_attention;
  const bool wide = of.head_dim > kNarrow;
  const double share = of.backward ? (wide ? rates.wide_backward : rates.backward)
                                   : (wide ? rates.wide_forward : rates.forward);
  const std::int64_t queries = DivideUp(of.queries, kSide);
  const std::int64_t keys = DivideUp(of.keys, kSide);
  const double whole = static_cast<double>(queries * keys * kSide * kSide) /
                       static_cast<double>(of.queries * of.keys);
  const auto blocks = static_cast<double>(of.batch * of.heads * (of.backward ? keys : queries));
  const Duration block = of.backward ? rates.block_backward : rates.block;
  return SecondsAtPeak(traits, gpu) * whole / share +
         blocks * block.seconds() / static_cast<double>(gpu.multiprocessors);
}

/// Thread blocks of one head in the order in which they start, as the pairs of 128 queries and 128
/// keys that each goes over. The backward's count queries by 64.
std::vector<double> PairsOfBlocks(const AttentionShape& of) {
  constexpr std::int64_t kHalf = kBlock / 2;
  const std::int64_t own = BlocksOf(of.backward ? of.keys : of.queries);
  const std::int64_t halves = DivideUp(of.queries, kHalf);
  const double others =
      of.backward ? static_cast<double>(halves) / 2 : static_cast<double>(BlocksOf(of.keys));
  std::vector<double> pairs(static_cast<std::size_t>(own), others);
  for (std::size_t i = 0; of.causal && i < pairs.size(); ++i) {
    pairs[i] = of.backward ? std::max(others - static_cast<double>(i), 0.5)
                           : std::min(static_cast<double>(i + 1), others);
  }
  return pairs;
}

/// Until the last thread block of `heads` alike heads has ended, seconds: each starts, one head
/// after the other, where a multiprocessor comes free. Of many heads the last ones are dealt so;
/// the multiprocessors share the others evenly.
double DealtBlocks(const std::vector<double>& pairs,
                   std::int64_t heads,
                   double pair,
                   double block,
                   std::int64_t multiprocessors) {
  constexpr std::int64_t kDealt = 8192;  // thread blocks
  const double whole = std::accumulate(pairs.begin(), pairs.end(), 0.0) * pair +
                       static_cast<double>(pairs.size()) * block;
  const auto of_head = std::max<std::int64_t>(1, static_cast<std::int64_t>(pairs.size()));
  const std::int64_t last = std::min(heads, std::max<std::int64_t>(1, kDealt / of_head));
  const double before =
      static_cast<double>(heads - last) * whole / static_cast<double>(multiprocessors);
  std::priority_queue<double, std::vector<double>, std::greater<>> free;
  for (std::int64_t i = 0; i < multiprocessors; ++i) {
    free.push(0);
  }
  double end = 0;
  for (std::int64_t head = 0; head < last; ++head) {
    for (const double own : pairs) {
      const double ends = free.top() + own * pair + block;
      free.pop();
      free.push(ends);
      end = std::max(end, ends);
    }
  }
  return before + end;
}

double CudnnSeconds(const AttentionShape& of, std::int64_t element, const GpuSpec& gpu) {
  constexpr std::int64_t kStep = 64;
  const CudnnAttentionRates& rates =
      of.backward ? gpu.kernels->cudnn_attention_backward : gpu.kernels->cudnn_attention;
  const auto steps = [](std::int64_t width) { return DivideUp(width, kStep); };
  const double head = static_cast<double>(steps(of.head_dim) + steps(of.value_dim)) / 2;
  const bool wide = head * kStep > kNarrow;
  double pair = rates.pair.seconds() + head * rates.pair_head.seconds();
  pair *= wide ? rates.wide : 1;
  pair *= !of.masked ? 1 : wide ? rates.wide_masked : rates.masked;
  pair *= of.keys > kBlock && of.keys % kBlock != 0 ? rates.uneven : 1;
  const double block = rates.block.seconds() + head * rates.block_head.seconds();
  return rates.start.seconds() +
         DealtBlocks(PairsOfBlocks(of), of.batch * of.heads, pair, block, gpu.multiprocessors) +
         (of.backward
              ? BackwardEnds(of, of.queries, element, gpu.kernels->cudnn_attention_backward, gpu)
              : 0);
}

/// The width of heads that the flash kernels pad one to. Source: PyTorch 2.11's copy of
/// FlashAttention, flash_api.cpp and static_switch.h.
std::int64_t FlashHead(std::int64_t width) {
  constexpr std::array<std::int64_t, 6> kWidths = {32, 64, 96, 128, 192, 256};
  const auto* found = std::lower_bound(kWidths.begin(), kWidths.end(), width);
  return found == kWidths.end() ? width : *found;
}

/// Of the flash kernels, and of the memory-efficient ones in float32.
double FlashSeconds(const KernelTraits& traits,
                    const AttentionShape& of,
                    std::int64_t element,
                    const GpuSpec& gpu) {
  const AttentionRates& rates =
      of.backward ? gpu.kernels->attention_backward : gpu.kernels->attention;
  const std::int64_t own = BlocksOf(of.backward ? of.keys : of.queries);
  const std::int64_t others = BlocksOf(of.backward ? of.queries : of.keys);
  const auto heads = static_cast<double>(of.batch * of.heads);
  const double efficiency =
      of.backward ? gpu.attention_backward_efficiency : gpu.attention_efficiency;
  const double processor = SecondsAtPeak(traits, gpu) / static_cast<double>(traits.flops) *
                           static_cast<double>(gpu.multiprocessors) / efficiency;  // seconds a FLOP
  const std::int64_t products = of.backward ? 5 : 2;
  const double pair =
      processor * static_cast<double>(2 * products * FlashHead(of.head_dim) * kBlock * kBlock);
  const double block = rates.block.seconds() + (of.causal ? rates.diagonal.seconds() : 0);
  const double shared = heads * (static_cast<double>(own) * block +
                                 static_cast<double>(BlockPairs(own, others, of.causal)) * pair);
  const double longest = block + static_cast<double>(others) * pair;
  return shared / static_cast<double>(gpu.multiprocessors) + rates.tail * longest +
         (of.backward ? BackwardEnds(of, BlocksOf(of.queries) * kBlock, element,
                                     gpu.kernels->attention_backward, gpu)
                      : 0);
}

}  // namespace

std::optional<double> AttentionSeconds(const KernelTraits& of, const GpuSpec& gpu) {
  if (!of.attention || of.flops == 0) {
    return std::nullopt;
  }
  const std::int64_t element = ElementBytes(of.inputs.front()->dtype);
  if (of.family == KernelFamily::kCudnnAttention) {
    return CudnnSeconds(*of.attention, element, gpu);
  }
  if (of.family == KernelFamily::kEfficientAttention && element == 2) {
    return EfficientSeconds(of, *of.attention, gpu);
  }
  return FlashSeconds(of, *of.attention, element, gpu);
}

}  // namespace dcsim
