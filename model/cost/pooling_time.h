#pragma once

#include <optional>

#include "model/cost/kernel_traits.h"
#include "model/cost/rate_fields.h"

namespace dcsim {

struct GpuSpec;

/// Windows: elements of all of them a second.
struct PoolingRates {
  double forward = 0;  // means
  double backward = 0;
  double maximum = 0;
  double maximum_backward = 0;
  double unfolded = 0;  // im2col
  double folded = 0;    // col2im

  static constexpr auto Fields() {
    return std::tuple(PositiveField("forward", &PoolingRates::forward),
                      PositiveField("backward", &PoolingRates::backward),
                      PositiveField("maximum", &PoolingRates::maximum),
                      PositiveField("maximum_backward", &PoolingRates::maximum_backward),
                      PositiveField("unfolded", &PoolingRates::unfolded),
                      PositiveField("folded", &PoolingRates::folded));
  }
};

/// Time of pooling, im2col and col2im on a GPU whose file has `kernels`, seconds: elements of all
/// windows, which end where the tensor does. Source: docs/design/costs/elementwise.md.
std::optional<double> PoolingSeconds(const KernelTraits& of, const GpuSpec& gpu);

}  // namespace dcsim
