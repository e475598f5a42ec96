#pragma once

#include <optional>

#include "model/base/units.h"
#include "model/cost/kernel_traits.h"

namespace dcsim {

struct GpuSpec;

/// Seconds of any kernel:
///
///   max(FLOPs / (peak * efficiency), bytes / (bandwidth * efficiency))
///
/// Throws Error for a product in a dtype without a peak. Source: docs/design/costs.md.
std::optional<double> RooflineSeconds(const KernelTraits& of, const GpuSpec& gpu);

/// Its products at the peak of their dtype; 0 where it has none. Throws Error without a peak.
double SecondsAtPeak(const KernelTraits& of, const GpuSpec& gpu);

/// Bytes at a share of the bandwidth.
double TransferSeconds(Bytes bytes, const GpuSpec& gpu, double share);

}  // namespace dcsim
