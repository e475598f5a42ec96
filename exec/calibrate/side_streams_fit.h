#pragma once

#include <span>

#include "exec/calibrate/contention_sample.h"
#include "exec/calibrate/fit_search.h"

namespace dcsim::exec {

/// What samples say of work that copy engines do, and of copies of two side streams; shares of
/// speeds alone (docs/design/costs/side_streams.md).
struct SideStreamsFit {
  ShareRange collective_beside_reads;  // of peers' memory, by copy engines
  ShareRange reads_beside_collective;
  ShareRange copy_beside_reads;
  ShareRange copies_beside_copies;  // that move bytes all the time, of what many kernels say
  ShareRange to_host;               // beside compute
  ShareRange from_host;
  TimeRange crowded_kernel;  // Contention::crowded_kernel, of kernels that memory does not hold up
  Duration typical_crowded;  // the median
};

/// Whether the fit of compute beside one other piece of work leaves the sample to this one.
bool OfSideStreams(const ContentionSample& sample);

/// Of all samples; `ranks` >= 2.
SideStreamsFit FitSideStreams(std::span<const ContentionSample> samples, int ranks);

}  // namespace dcsim::exec
