#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "exec/calibrate/launch_samples.h"
#include "model/cost/launch_time.h"
#include "model/machine/gpu.h"

namespace dcsim::exec {

/// What a rate rests on.
struct RateEvidence {
  std::string_view rate;     // its key in the file of a GPU
  std::size_t launches = 0;  // different ones, of all workloads, whose time may depend on it
  double share = 0;          // of the Triton time, theirs: the mean over workloads
  bool shown = false;        // their times tell it
};

struct LaunchFit {
  TritonRates rates;
  std::vector<RateEvidence> evidence;    // in the order of TritonRates::Fields
  double error = 0;                      // |predicted / measured - 1| of a workload's Triton time;
                                         // the mean over workloads
  std::optional<double> left_out_error;  // the same of each workload by the fit to the others; none
                                         // with fewer than two
};

/// Mean over workloads of |predicted / measured - 1| of the time of all Triton kernels of a step.
double TritonTimeError(const std::vector<WorkloadLaunches>& workloads,
                       const TritonRates& rates,
                       const GpuSpec& gpu);

/// Fits the rates of Triton kernels to measured launches: the least sum of
/// weight * |log(predicted / measured)|, where a launch's weight is its share of its workload's
/// Triton time. Rates are searched one after the other, over a grid each, until nothing changes;
/// then those that depend on each other together. Of equally good values the one that costs least
/// is taken.
///
/// A rate that no launch shows keeps the GPU's; without those, what launches cost that are priced
/// without rates: shares are `bandwidth_efficiency`, functions 1e13 a second. A rate is not shown
/// where none of its values makes the sum better by 0.001 a workload, or where the best of one of
/// functions is the highest, 1e13.
///
/// Throws Error where no workload has a launch.
LaunchFit FitLaunches(const std::vector<WorkloadLaunches>& workloads, const GpuSpec& gpu);

}  // namespace dcsim::exec
