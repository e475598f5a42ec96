#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/fit_changes.h"
#include "tools/common/step_variants.h"

namespace dcsim {

/// A step with changes, predicted.
struct FitAnswer {
  std::vector<FitChange> changes;
  std::string how;  // what to type or write for all of them
  StepOptions options;
  PredictedVariant predicted;
  bool fits = false;
  double cost = 0;  // GPU time a token, as a part of the step's without changes; 0: unknown
};

/// A change that was not predicted.
struct UntriedChange {
  std::string label;
  std::string reason;  // why; or the command that records what it needs
  bool is_command = false;
};

/// What is known about a step and how it could change.
struct FitFindings {
  PredictedVariant now;
  std::optional<PredictedVariant> unprofiled;  // the step priced by the roofline, where a profile
                                               // prices it: recordings made on the way have none
  std::vector<FitAnswer> answers;              // cheapest first
  std::vector<UntriedChange> untried;
};

/// Makes a recording; "" or why not.
using MakeRecording = std::function<std::string(const AskedRecording&)>;

struct FitSearch {
  unsigned threads = 1;
  MakeRecording make;  // empty: recordings that are missing are named, none is made
  std::atomic<std::size_t>* done = nullptr;  // counts the steps that are predicted
};

/// Predicts a step, each change of it, and combinations: of the three best with one more change
/// each, twice, and again until something fits, at most four changes together. The answers are the
/// same at any number of threads. Throws Error where the step itself is bad input.
FitFindings FindFits(const FitBase& base, RecordingShelf& shelf, const FitSearch& search);

}  // namespace dcsim
