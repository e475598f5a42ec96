#pragma once

#include <span>

#include "exec/calibrate/drift_benchmark.h"

namespace dcsim::exec {

/// `ranks_apart` of docs/design/costs/collectives.md: ranks that went on together t before wait
/// `idle` + `rate` * t for the last one.
struct DriftFit {
  Duration idle;    // of the shortest t
  double rate = 0;  // the line through that with the least squares
};

/// At least one sample; with one alone the rate is 0.
DriftFit FitDrift(std::span<const DriftSample> samples);

}  // namespace dcsim::exec
