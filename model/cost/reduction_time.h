#pragma once

#include <optional>

#include "model/cost/kernel_traits.h"
#include "model/cost/rate_fields.h"

namespace dcsim {

struct GpuSpec;

/// Sums, means and their like (ReduceShape).
struct ReductionRates {
  double share = 1;  // of the bandwidth
  Duration start;
  Duration wave;    // of thread blocks that fill the GPU
  Duration values;  // of the four values that a thread adds at a time, at least
  Duration stage;   // where thread blocks share an output: writing parts, meeting, adding them
  Duration part;    // of it, for each of an output's parts

  static constexpr auto Fields() {
    return std::tuple(
        ShareField("share", &ReductionRates::share), TimeField("start", &ReductionRates::start),
        TimeField("wave", &ReductionRates::wave), TimeField("values", &ReductionRates::values),
        TimeField("stage", &ReductionRates::stage), TimeField("part", &ReductionRates::part));
  }
};

/// Time of sums, means and their like on a GPU whose file has `kernels`, seconds: start, bytes,
/// waves of thread blocks, and what joining parts takes. None where the reduced dimensions cannot
/// be told (FindReduceShape). Source: docs/design/costs/elementwise.md.
std::optional<double> ReductionSeconds(const KernelTraits& of, const GpuSpec& gpu);

}  // namespace dcsim
