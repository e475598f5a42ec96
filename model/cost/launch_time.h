#pragma once

#include <optional>

#include "model/base/units.h"
#include "model/cost/kernel_traits.h"
#include "model/cost/rate_fields.h"

namespace dcsim {

struct GpuSpec;

/// Triton kernels that Inductor writes: shares of the bandwidth by kind, and what they compute. The
/// `triton` of a GPU file (docs/design/costs/compiled.md).
struct TritonRates {
  double pointwise = 1;
  double tiles = 1;  // of pointwise kernels whose blocks go along two dimensions, as transposes do
  double reduction = 1;
  double outer_reduction = 1;  // along a dimension that is not the last, or that one, too
  double persistent_reduction = 1;
  double mixed_reduction = 1;  // of tensors that lie along different dimensions
  double full_threads = 1;     // of the threads that a GPU holds, from which on the shares hold
  double trigonometric_per_second = 0;  // sines and cosines
  double error_functions_per_second = 0;
  double exponentials_per_second = 0;
  double online_softmax_per_second = 0;  // elements of softmaxes put together while they are read
  Duration start;                        // of any of them

  static constexpr auto Fields() {
    return std::tuple(
        ShareField("pointwise", &TritonRates::pointwise), ShareField("tiles", &TritonRates::tiles),
        ShareField("reduction", &TritonRates::reduction),
        ShareField("outer_reduction", &TritonRates::outer_reduction),
        ShareField("persistent_reduction", &TritonRates::persistent_reduction),
        ShareField("mixed_reduction", &TritonRates::mixed_reduction),
        ShareField("full_threads", &TritonRates::full_threads),
        PositiveField("trigonometric_per_second", &TritonRates::trigonometric_per_second),
        PositiveField("error_functions_per_second", &TritonRates::error_functions_per_second),
        PositiveField("exponentials_per_second", &TritonRates::exponentials_per_second),
        PositiveField("online_softmax_per_second", &TritonRates::online_softmax_per_second),
        TimeField("start", &TritonRates::start));
  }
};

/// Bytes that a launch of a Triton kernel moves from and to memory: those of its reads and writes.
/// An argument that a kernel reads in several loops over the reduced elements counts that often
/// where the rows that are in work at a time do not fit the cache.
Bytes LaunchedBytes(const KernelTraits& of, const GpuSpec& gpu);

/// What a launch does, as far as its time depends on it.
struct LaunchWork {
  Bytes bytes;                           // LaunchedBytes
  double TritonRates::*share = nullptr;  // of the bandwidth, of kernels of its kind and blocks
  std::int64_t threads = 0;              // of all its blocks
  std::int64_t elements = 0;             // of which each is computed
  KernelMath math;                       // of one of them
};

/// Of a Triton kernel.
LaunchWork LaunchWorkOf(const KernelTraits& of, const GpuSpec& gpu);

/// Threads that a GPU holds.
std::int64_t ThreadsOf(const GpuSpec& gpu);

/// Seconds that it takes at these rates: start, then bytes at the share of the bandwidth that
/// kernels of its kind reach, less where it has too few threads for that, or what it computes at
/// those rates, whichever is longer.
double LaunchWorkSeconds(const LaunchWork& work, const TritonRates& rates, const GpuSpec& gpu);

/// The same at the GPU's (GpuSpec::triton); without those all bytes at `bandwidth_efficiency`. None
/// of other kernels.
std::optional<double> LaunchSeconds(const KernelTraits& of, const GpuSpec& gpu);

}  // namespace dcsim
