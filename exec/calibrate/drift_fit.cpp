#include "exec/calibrate/drift_fit.h"

#include <algorithm>

#include "model/base/error.h"

namespace dcsim::exec {

DriftFit FitDrift(std::span<const DriftSample> samples) {
  DCSIM_CHECK(!samples.empty()) << "no sample tells how far ranks drift apart";
  const DriftSample& shortest = *std::ranges::min_element(samples, {}, &DriftSample::since);
  double products = 0;
  double squares = 0;
  for (const DriftSample& sample : samples) {
    const double since = (sample.since - shortest.since).seconds();
    products += since * (sample.apart - shortest.apart).seconds();
    squares += since * since;
  }
  return {shortest.apart, squares > 0 ? std::max(0.0, products / squares) : 0};
}

}  // namespace dcsim::exec
