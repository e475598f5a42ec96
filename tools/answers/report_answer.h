#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/ir/plan.h"
#include "sim/analysis/predict.h"
#include "tools/views/report_page.h"

namespace dcsim {

/// A predicted step, and the page about it.
struct StepReport {
  Result result;
  std::string page;
};

/// Lowers and predicts a plan, and prints the page about its step (PrintReportPage).
///
///   rivals     of the search that found the plan
///   measured   what running it took
StepReport ReportStep(const Plan& plan,
                      const PredictionInputs& inputs,
                      std::vector<RivalStep> rivals,
                      std::optional<Result> measured);

/// A measured dc-result/1, read from its file, or from its text. Throws Error for anything else.
Result LoadMeasuredResult(const std::string& path_or_text);

}  // namespace dcsim
