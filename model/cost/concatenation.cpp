#include "model/cost/concatenation.h"

#include <algorithm>
#include <cmath>

#include "model/base/scaled.h"
#include "model/cost/kernel_models.h"
#include "model/machine/gpu.h"

namespace dcsim {
namespace {

constexpr std::int64_t kVector = 16;           // bytes that a thread copies at once
constexpr std::int64_t kShortVector = 8;       // … of elements of 2 bytes in parts of any length
constexpr std::int64_t kVectorThreads = 128;   // of a thread block that copies vectors
constexpr std::int64_t kVectorBlocks = 32;     // of a part, a multiprocessor
constexpr std::int64_t kElementThreads = 512;  // of a thread block that copies elements
constexpr std::int64_t kElementBlocks = 2;     // of a part, a multiprocessor
constexpr std::int64_t kHalfPrecision = 2;     // bytes

/// What parts of one kernel copy and leave idle.
struct Batch {
  std::int64_t elements = 0;
  std::int64_t largest = 0;
  std::int64_t empty_blocks = 0;
};

Batch BatchOf(std::span<const ConcatenatedPart> parts, std::int64_t blocks, std::int64_t of_block) {
  Batch batch;
  for (const ConcatenatedPart& part : parts) {
    batch.elements += part.elements;
    batch.largest = std::max(batch.largest, part.elements);
    batch.empty_blocks += blocks - std::min(blocks, DivideUp(part.elements, of_block));
  }
  return batch;
}

/// Time of a kernel whose copies take `copying` seconds.
double KernelTime(const Batch& batch, double copying, const ConcatenationRates& rates) {
  const double empty = static_cast<double>(batch.empty_blocks) / rates.blocks_per_second;
  return rates.start.seconds() + copying + empty - rates.hidden * std::min(copying, empty);
}

}  // namespace

Duration ConcatenationTime(std::span<const ConcatenatedPart> parts,
                           std::int64_t element_bytes,
                           BytesPerSecond copying,
                           const GpuSpec& gpu) {
  const ConcatenationRates& rates = gpu.kernels->concatenation;
  const std::int64_t vector = std::max<std::int64_t>(1, kVector / element_bytes);
  const std::int64_t short_vector =
      element_bytes == kHalfPrecision ? kShortVector / element_bytes : vector;
  const auto moved = [element_bytes](std::int64_t elements) {
    return static_cast<double>(2 * elements * element_bytes);
  };
  const auto bandwidth = static_cast<double>(gpu.memory_bandwidth.count());
  double seconds = 0;
  bool begin_aligned = true;
  bool end_aligned = true;
  std::int64_t largest = 0;
  while (!parts.empty()) {
    const auto now = parts.first(std::min<std::size_t>(kConcatenatedAtOnce, parts.size()));
    parts = parts.subspan(now.size());
    for (const ConcatenatedPart& part : now) {
      begin_aligned = begin_aligned && part.begin % vector == 0;
      end_aligned = end_aligned && part.elements % vector == 0;
      largest = std::max(largest, part.elements);
    }
    if (begin_aligned) {
      const std::int64_t of_block = (end_aligned ? vector : short_vector) * kVectorThreads;
      const std::int64_t blocks =
          std::min(gpu.multiprocessors * kVectorBlocks, DivideUp(largest, of_block));
      const Batch batch = BatchOf(now, blocks, of_block);
      seconds +=
          KernelTime(batch, moved(batch.elements) / static_cast<double>(copying.count()), rates);
    } else {
      const Batch batch = BatchOf(now, gpu.multiprocessors * kElementBlocks, kElementThreads);
      const double all = moved(batch.elements) / rates.unaligned;
      const double one = moved(batch.largest) / rates.unaligned_part;
      seconds += KernelTime(batch, std::max(all, one) / bandwidth, rates);
    }
  }
  return NearestNs(seconds * 1e9);
}

std::vector<std::vector<ConcatenatedPart>> FlattenedParts(const Collective& collective,
                                                          const Graph& graph,
                                                          bool by_rank,
                                                          bool contiguous) {
  std::vector<std::vector<ConcatenatedPart>> cats(1);
  const int ranks = by_rank ? collective.ranks : 1;
  for (int rank = 0; rank < ranks; ++rank) {
    for (const CollectiveCall& call : collective.calls) {
      const std::int64_t share = call.elements / ranks;
      const std::int64_t begin = rank * share;
      const std::int64_t count =
          std::clamp<std::int64_t>(graph.numel(call.param) - begin, 0, share);
      if (count > 0) {
        cats.back().push_back({count, (contiguous ? call.offset : 0) + begin});
      }
      if (count < share && !cats.back().empty()) {
        cats.emplace_back();
      }
    }
  }
  if (cats.back().empty()) {
    cats.pop_back();
  }
  return cats;
}

}  // namespace dcsim
