#pragma once

#include <optional>

#include "model/cost/kernel_traits.h"
#include "model/cost/rate_fields.h"

namespace dcsim {

struct GpuSpec;

/// Shares of the bandwidth that softmax and its logarithm reach; rows of 1,024 elements or fewer
/// are dense memory work.
struct SoftmaxRates {
  double middle_rows = 1;  // of up to 2,048 elements
  double long_rows = 1;
  double long_rows_backward = 1;
  Duration block;  // of a thread block a row: longer rows that fill no multiple of 16 bytes
  double short_elements_per_second = 0;  // of up to 1,024 elements in half precision, each row
                                         // filled up to a power of two

  static constexpr auto Fields() {
    return std::tuple(
        ShareField("middle_rows", &SoftmaxRates::middle_rows),
        ShareField("long_rows", &SoftmaxRates::long_rows),
        ShareField("long_rows_backward", &SoftmaxRates::long_rows_backward),
        PositiveField("short_elements_per_second", &SoftmaxRates::short_elements_per_second),
        TimeField("block", &SoftmaxRates::block));
  }
};

/// Time of a softmax, its logarithm or their backward on a GPU whose file has `kernels`, seconds:
/// bytes, by the length of its rows. _safe_softmax and _softmax's backward are several kernels.
/// Source: docs/design/costs/elementwise.md.
std::optional<double> SoftmaxSeconds(const KernelTraits& of, const GpuSpec& gpu);

}  // namespace dcsim
