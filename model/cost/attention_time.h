#pragma once

#include <optional>

#include "model/cost/kernel_traits.h"
#include "model/cost/rate_fields.h"

namespace dcsim {

struct GpuSpec;

/// What fused attention takes besides its FLOPs: thread blocks of 128 queries (in the backward,
/// keys) share the multiprocessors, each goes over the other side in blocks of 128.
struct AttentionRates {
  Duration block;     // of a thread block, however much it goes over
  Duration diagonal;  // more of one where attention is causal
  double tail = 0;    // of the longest block: time in which other multiprocessors have run out

  static constexpr auto Fields() {
    return std::tuple(
        TimeField("block", &AttentionRates::block),
        TimeField("diagonal", &AttentionRates::diagonal),
        RateField<AttentionRates, double>{"tail", &AttentionRates::tail, RateRange::kUpToOne});
  }
};

/// What stands behind an attention's backward, as shares of the bandwidth.
struct AttentionEnds {
  double conversion = 1;  // of the query's gradient from float32
  double head_sums = 1;   // of key gradients over the query heads of one key head

  static constexpr auto Fields() {
    return std::tuple(ShareField("conversion", &AttentionEnds::conversion),
                      ShareField("head_sums", &AttentionEnds::head_sums));
  }
};

/// A backward, and what stands behind it.
struct AttentionBackwardRates : AttentionRates, AttentionEnds {
  static constexpr auto Fields() {
    return std::tuple_cat(AttentionRates::Fields(), AttentionEnds::Fields());
  }
};

/// Attention of the memory-efficient kernels in half precision: shares of the peak over blocks of
/// 64 queries and 64 keys, and what a thread block takes besides, however much it goes over.
struct EfficientAttentionRates {
  double forward = 1;
  double backward = 1;
  double wide_forward = 1;  // heads of more than 128 elements
  double wide_backward = 1;
  Duration block;           // of 64 queries
  Duration block_backward;  // of 64 keys

  static constexpr auto Fields() {
    return std::tuple(ShareField("forward", &EfficientAttentionRates::forward),
                      ShareField("backward", &EfficientAttentionRates::backward),
                      ShareField("wide_forward", &EfficientAttentionRates::wide_forward),
                      ShareField("wide_backward", &EfficientAttentionRates::wide_backward),
                      TimeField("block", &EfficientAttentionRates::block),
                      TimeField("block_backward", &EfficientAttentionRates::block_backward));
  }
};

/// Attention of cuDNN's kernels in half precision. A thread block takes 128 queries (in the
/// backward, keys) over the other side in blocks of 128; heads count in steps of 64 elements.
struct CudnnAttentionRates {
  Duration pair;           // of 128 queries and 128 keys, whatever the head
  Duration pair_head;      // the same, for each 64 elements of a head
  Duration block;          // a thread block, besides its pairs
  Duration block_head;     // the same, for each 64 elements of a head
  Duration start;          // a call
  double uneven = 1;       // a pair takes so many times as long where keys fill no block
  double masked = 1;       // … where a mask is added
  double wide = 1;         // … with heads of more than 128 elements
  double wide_masked = 1;  // … with such heads and a mask, beside `wide`

  static constexpr auto Fields() {
    return std::tuple(TimeField("pair", &CudnnAttentionRates::pair),
                      TimeField("pair_head", &CudnnAttentionRates::pair_head),
                      TimeField("block", &CudnnAttentionRates::block),
                      TimeField("block_head", &CudnnAttentionRates::block_head),
                      TimeField("start", &CudnnAttentionRates::start),
                      PositiveField("uneven", &CudnnAttentionRates::uneven),
                      PositiveField("masked", &CudnnAttentionRates::masked),
                      PositiveField("wide", &CudnnAttentionRates::wide),
                      PositiveField("wide_masked", &CudnnAttentionRates::wide_masked));
  }
};

/// … its backward.
struct CudnnAttentionBackwardRates : CudnnAttentionRates, AttentionEnds {
  static constexpr auto Fields() {
    return std::tuple_cat(CudnnAttentionRates::Fields(), AttentionEnds::Fields());
  }
};

/// Time of fused attention on a GPU whose file has `kernels`, seconds:
///
///   (blocks * block + pairs * FLOPs of a pair / rate of a multiprocessor) / multiprocessors
///     + tail * time of the longest block
///
/// over blocks of 128 queries (of keys in the backward, which has kernels before and behind that)
/// and their pairs with blocks of the other side. The memory-efficient kernels, which take masks,
/// reach a share of the peak in half precision. cuDNN's blocks start one after the other, each
/// where a multiprocessor comes free. Source: docs/design/costs/attention.md.
std::optional<double> AttentionSeconds(const KernelTraits& of, const GpuSpec& gpu);

}  // namespace dcsim
