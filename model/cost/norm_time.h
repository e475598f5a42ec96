#pragma once

#include <optional>

#include "model/cost/kernel_traits.h"
#include "model/cost/rate_fields.h"

namespace dcsim {

struct GpuSpec;

/// Layer norms: one thread block a row.
struct NormRates {
  double share = 1;  // of the bandwidth
  double rows_per_second = 0;

  static constexpr auto Fields() {
    return std::tuple(ShareField("share", &NormRates::share),
                      PositiveField("rows_per_second", &NormRates::rows_per_second));
  }
};

/// … of the gradient of its input.
struct LayerNormBackwardRates : NormRates {
  double columns_per_second = 0;  // rows of the sums for weight and bias, a wave

  static constexpr auto Fields() {
    return std::tuple_cat(NormRates::Fields(),
                          std::tuple(PositiveField("columns_per_second",
                                                   &LayerNormBackwardRates::columns_per_second)));
  }
};

/// Layer norms whose weight or bias begins where no four elements do: each row and each element
/// takes its time.
struct UnalignedNormRates {
  double rows_per_second = 0;
  double elements_per_second = 0;

  static constexpr auto Fields() {
    return std::tuple(
        PositiveField("rows_per_second", &UnalignedNormRates::rows_per_second),
        PositiveField("elements_per_second", &UnalignedNormRates::elements_per_second));
  }
};

/// Group norms, in several kernels.
struct GroupNormRates {
  Duration start;                        // besides what follows
  double blocks_per_second = 0;          // thread blocks, each of which sums a group
  double elements_per_second = 0;        // that they sum
  double group_elements_per_second = 0;  // of one group alone
  double written_per_second = 0;         // elements

  static constexpr auto Fields() {
    return std::tuple(
        TimeField("start", &GroupNormRates::start),
        PositiveField("blocks_per_second", &GroupNormRates::blocks_per_second),
        PositiveField("elements_per_second", &GroupNormRates::elements_per_second),
        PositiveField("group_elements_per_second", &GroupNormRates::group_elements_per_second),
        PositiveField("written_per_second", &GroupNormRates::written_per_second));
  }
};

/// … their backward.
struct GroupNormBackwardRates {
  Duration start;
  Duration image;                // of the sums for weight and bias; half as long for short channels
  double blocks_per_second = 0;  // thread blocks, each of which sums an image's channel
  double elements_per_second = 0;      // that they sum
  double short_blocks_per_second = 0;  // the same where a channel has fewer than 256
  double short_elements_per_second = 0;
  double written_per_second = 0;

  static constexpr auto Fields() {
    return std::tuple(
        TimeField("start", &GroupNormBackwardRates::start),
        TimeField("image", &GroupNormBackwardRates::image),
        PositiveField("blocks_per_second", &GroupNormBackwardRates::blocks_per_second),
        PositiveField("elements_per_second", &GroupNormBackwardRates::elements_per_second),
        PositiveField("short_blocks_per_second", &GroupNormBackwardRates::short_blocks_per_second),
        PositiveField("short_elements_per_second",
                      &GroupNormBackwardRates::short_elements_per_second),
        PositiveField("written_per_second", &GroupNormBackwardRates::written_per_second));
  }
};

/// Time of a layer, RMS or group norm on a GPU whose file has `kernels`, seconds; none of another
/// op:
///
///   layer, RMS norm   bytes + rows; the backward's sums for weight and bias besides; operands that
///                     are not contiguous, as behind a convolution, are copied first
///   group norm        elements, or those of one group, which a thread block sums
///
/// Source: docs/design/costs/elementwise.md.
std::optional<double> NormSeconds(const KernelTraits& of, const GpuSpec& gpu);

}  // namespace dcsim
