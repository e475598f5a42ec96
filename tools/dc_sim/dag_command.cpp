#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "model/base/error.h"
#include "tools/common/file.h"
#include "tools/common/step_options.h"
#include "tools/dc_sim/commands.h"
#include "tools/views/result_text.h"
#include "tools/views/schedule_dag.h"

namespace dcsim {
namespace {

struct DagOptions {
  StepOptions step;
  std::string out = "schedule.svg";
  bool large = false;
};

ExitCode RunDag(const DagOptions& options) {
  CheckDagPath(options.out);
  const LoadedStep step = LoadStep(options.step);
  CheckOutputs({{"--out", options.out}});
  const Schedule schedule = LowerStep(step);
  const Prediction prediction = Predict(schedule, step.plan, step.inputs(), true);
  WriteScheduleDag(options.out, options.large ? DagForm::kLarge : DagForm::kPage, schedule,
                   step.workload.graph, *prediction.timeline);
  if (prediction.stop) {
    std::cout << PrintResultText(prediction.result, step.cluster) << "\n";
  }
  std::cout << "wrote " << options.out << "\n";
  return prediction.stop ? ExitCode::kAnswerIsNo : ExitCode::kDone;
}

}  // namespace

Subcommand DagCommand() {
  return {"dag", "A picture of the schedule on one page: streams, layers, critical path",
          "  dc-sim dag traces/qwen3-8b --cluster configs/clusters/h200-8.yaml --plan "
          "configs/plans/zero3.yaml --out schedule.svg",
          [](CLI::App& app) -> std::function<ExitCode()> {
            const auto options = std::make_shared<DagOptions>();
            DeclareStepOptions(app, options->step);
            app.add_option("--out", options->out,
                           "file to write (.svg, .pdf, .png or .dot); schedule.svg if left out");
            app.add_flag("--large", options->large,
                         "a box for every module, gathered parameter and bucket instead of a page");
            return [options] { return RunDag(*options); };
          }};
}

}  // namespace dcsim
