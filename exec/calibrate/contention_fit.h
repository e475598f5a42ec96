#pragma once

#include <optional>
#include <span>

#include "exec/calibrate/contention_sample.h"
#include "exec/calibrate/fit_search.h"
#include "exec/calibrate/side_kernels_fit.h"
#include "exec/calibrate/side_streams_fit.h"
#include "model/machine/contention.h"

namespace dcsim::exec {

/// The parameters of docs/design/costs/contention.md that describe `samples` best; those of which
/// no sample tells stay as they are in Contention(). How far apart ranks drift is none of them.
struct ContentionFit {
  Contention contention;
  double compute_error = 0;            // mean of |speed by the law less measured| / measured
  double beside_error = 0;             // the same of the side work's time
  std::optional<SideKernelsFit> many;  // where copies of many tensors were timed
  SideStreamsFit side_streams;
  TimeRange first_delay;  // what the pairs say of `comes_first`
};

/// What the fit has to know of the machine that the samples are from.
struct ContentionMachine {
  int multiprocessors = 1;  // of the GPU
  Bytes cache;              // its L2
  int ranks = 2;
};

ContentionFit FitContention(std::span<const ContentionSample> samples,
                            const ContentionMachine& machine);

}  // namespace dcsim::exec
