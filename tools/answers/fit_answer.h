#pragma once

#include <atomic>
#include <iostream>
#include <mutex>
#include <string>

#include "tools/common/fit_search.h"

namespace dcsim {

/// What dc-sim fit is asked.
struct FitQuestion {
  StepOptions step;
  bool record = true;    // missing recordings are made by dcrecord where it is installed
  unsigned threads = 0;  // 0: all processors
};

/// What a fit is doing, for the thread that shows it.
class FitActivity {
 public:
  void Set(std::string text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    text_ = std::move(text);
  }
  std::string Text() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return "fit: " + (text_.empty() ? std::to_string(done) + " steps predicted" : text_);
  }

  std::atomic<std::size_t> done = 0;

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

/// Whether a step fits, and what makes it fit or faster (FindFits). Throws Error as LoadStep.
///
///   step    of the question, loaded
///   notes   takes what is said of the plan and of recordings that are made, a line each
FitFindings AnswerFit(const FitQuestion& question,
                      const LoadedStep& step,
                      FitActivity& activity,
                      std::ostream& notes);

}  // namespace dcsim
