#include "tools/answers/report_answer.h"

#include <utility>

#include "model/base/error.h"
#include "model/passes/verify.h"
#include "tools/common/answer_json.h"
#include "tools/common/measured_results.h"

namespace dcsim {

StepReport ReportStep(const Plan& plan,
                      const PredictionInputs& inputs,
                      std::vector<RivalStep> rivals,
                      std::optional<Result> measured) {
  const Schedule schedule = LowerFor(plan, inputs);
  RequireCorrect(schedule, inputs.graph);
  Prediction prediction = Predict(schedule, plan, inputs, /*keep_timeline=*/true);
  const ReportedStep step{prediction.result, inputs.cluster,       schedule,
                          inputs.graph,      *prediction.timeline, std::nullopt,
                          std::move(rivals), std::move(measured)};
  std::string page = PrintReportPage(step, AnsweringVersion());
  return {std::move(prediction.result), std::move(page)};
}

Result LoadMeasuredResult(const std::string& path_or_text) {
  if (path_or_text.starts_with('{')) {
    return ReadMeasured({"measured", Json::parse(path_or_text)});
  }
  std::optional<Result> result;
  ForEachMeasured(path_or_text, [&](const MeasuredDocument& each) {
    if (result) {
      throw Error(path_or_text + ": expected one measured result, found several");
    }
    result = ReadMeasured(each);
  });
  return std::move(*result);
}

}  // namespace dcsim
