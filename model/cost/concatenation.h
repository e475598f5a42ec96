#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/cost/rate_fields.h"
#include "model/ir/graph.h"
#include "model/ir/schedule.h"

namespace dcsim {

struct GpuSpec;

/// at::cat, a kernel for each 128 parts at most (ConcatenationTime).
struct ConcatenationRates {
  Duration start;                // a kernel
  double blocks_per_second = 0;  // thread blocks that find nothing to copy
  double unaligned = 1;          // share of the bandwidth where a part begins between multiples
                                 // of 16 bytes
  double unaligned_part = 1;     // … of one such part, which gets few thread blocks
  double hidden = 0;             // of the shorter of copying and empty thread blocks: beside the
                                 // other

  static constexpr auto Fields() {
    return std::tuple(TimeField("start", &ConcatenationRates::start),
                      PositiveField("blocks_per_second", &ConcatenationRates::blocks_per_second),
                      ShareField("unaligned", &ConcatenationRates::unaligned),
                      ShareField("unaligned_part", &ConcatenationRates::unaligned_part),
                      ShareField("hidden", &ConcatenationRates::hidden));
  }
};

/// What at::cat copies to behind what it copied before.
struct ConcatenatedPart {
  std::int64_t elements = 0;
  std::int64_t begin = 0;  // elements in front of it, from a multiple of 16 bytes on
};

/// Time of one at::cat into memory that begins at a multiple of 16 bytes.
///
///   copying   what parts at multiples of 16 bytes are copied at, bytes read plus bytes written
///
/// A kernel takes 128 parts, each with as many thread blocks as the largest so far needs (32 a
/// multiprocessor at most), so most blocks of smaller parts find nothing to copy, which takes its
/// time (ConcatenationRates). From the first part on that begins between multiples of 16 bytes all
/// are copied element by element, each by two blocks a multiprocessor; from the first on that ends
/// so elements of 2 bytes by half as many a block.
/// Source: PyTorch 2.11, aten/src/ATen/native/cuda/Shape.cu; docs/design/costs/copies.md.
Duration ConcatenationTime(std::span<const ConcatenatedPart> parts,
                           std::int64_t element_bytes,
                           BytesPerSecond copying,
                           const GpuSpec& gpu);

/// The parts of a bucket as eager ZeRO flattens it: gradient by gradient or, in ZeRO-3, rank by
/// rank each gradient's share, one at::cat up to each share that padding ends.
///
///   contiguous   gradients lie behind one another in one buffer, else each begins at a multiple of
///                16 bytes
std::vector<std::vector<ConcatenatedPart>> FlattenedParts(const Collective& collective,
                                                          const Graph& graph,
                                                          bool by_rank,
                                                          bool contiguous);

}  // namespace dcsim
