#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "tools/answers/fit_answer.h"
#include "tools/common/answer_json.h"
#include "tools/common/count_option.h"
#include "tools/common/file.h"
#include "tools/common/progress.h"
#include "tools/dc_sim/commands.h"
#include "tools/views/fit_text.h"

namespace dcsim {
namespace {

struct FitOptions {
  FitQuestion question;
  std::string json;
};

ExitCode RunFit(const FitOptions& options) {
  const LoadedStep step = LoadStep(options.question.step);
  CheckOutputs({{"--json", options.json}});
  FitActivity activity;
  const FitFindings findings = [&] {
    const ProgressTicker ticker([&] { return activity.Text(); });
    return AnswerFit(options.question, step, activity, std::cerr);
  }();
  if (!options.json.empty()) {
    WriteFile(options.json, PrintAnswer(PrintFit(findings)));
  }
  if (options.json != "-") {
    std::cout << PrintFitText(findings, step.cluster);
  }
  return findings.now.result.outcome == "completed" ? ExitCode::kDone : ExitCode::kAnswerIsNo;
}

}  // namespace

Subcommand FitCommand() {
  return {"fit", "Does a step fit, how far is it from the limit, and what makes it fit or faster",
          "  dc-sim fit traces/qwen3-8b --cluster h200-8\n"
          "  dc-sim fit traces/qwen3-8b --cluster h200-8 --plan ds_config.json --no-record",
          [](CLI::App& app) -> std::function<ExitCode()> {
            const auto options = std::make_shared<FitOptions>();
            options->question.step.plan = "zero3-deepcompile";
            DeclareStepOptions(app, options->question.step);
            app.get_option("--plan")->required(false)->description(
                "plan file or DeepSpeed JSON; zero3-deepcompile if left out");
            app.add_flag_callback(
                "--no-record", [options] { options->question.record = false; },
                "name the commands that record other sizes instead of running dcrecord");
            AddCount(app, "--threads", options->question.threads, {1, 4096},
                     "all processors if left out");
            app.add_option("--json", options->json, "write all predictions as JSON; - is stdout");
            return [options] { return RunFit(*options); };
          }};
}

}  // namespace dcsim
