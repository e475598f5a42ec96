#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/ir/result.h"
#include "tools/common/predict_measured.h"

namespace dcsim {

/// A measured step, and what was predicted for it.
struct Comparison {
  std::string name;  // of the measured file
  Result measured;
  Result predicted;
  std::optional<HostPrediction> with_host;
};

/// A labelled line: predicted, measured, error in percent of the measured.
std::string ComparisonLine(const std::string& label, Duration predicted, Duration measured);

/// One comparison in detail: times, memory and collectives side by side.
std::string PrintComparison(const Comparison& comparison);

/// A line each, and below them the mean and the largest error of the step times and of the reserved
/// bytes.
std::string PrintComparisonTable(const std::vector<Comparison>& comparisons);

}  // namespace dcsim
