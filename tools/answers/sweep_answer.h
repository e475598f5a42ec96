#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "tools/common/step_options.h"
#include "tools/views/sweep_text.h"

namespace dcsim {

/// What dc-sim sweep is asked.
struct SweepQuestion {
  StepOptions step;                // its plan is not read
  std::vector<std::string> plans;  // at least one
  std::vector<std::string> vary;   // "key=a,b" (ParseAxes)
  unsigned threads = 0;            // 0: all processors
};

/// The steps of a sweep, before they are predicted.
struct SweepSteps {
  SweepReport report;  // rows without predictions
  std::vector<StepVariant> variants;
};

/// Every combination of the values; the last axis changes fastest, and plans, where there are
/// several, are the last. Throws Error for axes that say nothing, the same twice, or too much, and
/// for sizes that are not recorded.
SweepSteps ListSweep(const SweepQuestion& question);

/// Predicts the steps. Throws Error for the first that is bad input, with its label.
///
///   done   counts the steps that are predicted; may be null
SweepReport PredictSweep(SweepSteps steps, unsigned threads, std::atomic<std::size_t>* done);

/// The lines that loading the rows gave, each once.
std::vector<std::string> NotesOf(const SweepReport& report);

/// Whether a step of it completes.
bool AnyCompletes(const SweepReport& report);

}  // namespace dcsim
