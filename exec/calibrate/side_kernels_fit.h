#pragma once

#include <optional>
#include <span>

#include "exec/calibrate/contention_sample.h"
#include "exec/calibrate/fit_search.h"
#include "model/machine/contention.h"

namespace dcsim::exec {

/// How a side stream's copies and divisions of many tensors get on beside compute
/// (docs/design/costs/side_streams.md, Many short kernels).
struct SideKernelsFit {
  SideKernels kernels;
  int copy_multiprocessors = 0;  // of Contention
  double product_speed = 1;      // of products beside them, as a share of their speed alone
  double copy_rate = 1;  // of one copy in the last waves of the samples' products, in the mean
  TimeRange later;       // what the pairs say of it
  double error = 0;      // of what products leave them: mean of |law less measured| / measured
};

/// Whether copies or divisions of many tensors ran beside compute.
bool BesideMany(const ContentionSample& sample);

/// Each of the kernels comes `later` beside streaming kernels that are longer than that: the mean
/// over their kinds, since what is lost adds up. Beside products they run for `between` of each and
/// in its last wave, as far as the multiprocessors that it leaves suffice, one at least. Nothing
/// without samples of many kernels beside both.
std::optional<SideKernelsFit> FitSideKernels(std::span<const ContentionSample> samples,
                                             int multiprocessors);

}  // namespace dcsim::exec
