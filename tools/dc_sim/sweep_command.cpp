#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "tools/answers/sweep_answer.h"
#include "tools/common/answer_json.h"
#include "tools/common/count_option.h"
#include "tools/common/file.h"
#include "tools/common/progress.h"
#include "tools/dc_sim/commands.h"
#include "tools/views/svg_chart.h"
#include "tools/views/sweep_plot.h"
#include "tools/views/sweep_text.h"

namespace dcsim {
namespace {

struct SweepOptions {
  SweepQuestion question;
  std::string json;
  std::string csv;
  std::string plot;
};

SweepReport Predict(SweepSteps steps, unsigned threads) {
  std::atomic<std::size_t> done = 0;
  const std::string all = std::to_string(steps.variants.size());
  const ProgressTicker ticker(
      [&] { return "sweep: " + std::to_string(done) + " of " + all + " steps predicted"; });
  return PredictSweep(std::move(steps), threads, &done);
}

void WriteReport(const SweepOptions& options, const SweepReport& report) {
  if (!options.json.empty()) {
    WriteFile(options.json, PrintAnswer(PrintSweep(report)));
  }
  if (!options.csv.empty()) {
    WriteFile(options.csv, PrintSweepCsv(report));
  }
  if (!options.plot.empty()) {
    WriteFile(options.plot, PrintSweepPlot(report));
  }
}

ExitCode RunSweep(const SweepOptions& options) {
  CheckSvgPath("--plot", options.plot);
  SweepSteps steps = ListSweep(options.question);
  CheckOutputs({{"--json", options.json}, {"--csv", options.csv}, {"--plot", options.plot}});
  const SweepReport report = Predict(std::move(steps), options.question.threads);
  for (const std::string& note : NotesOf(report)) {
    std::cerr << note << "\n";
  }
  WriteReport(options, report);
  if (options.json != "-" && options.csv != "-") {
    std::cout << PrintSweepText(report);
  }
  return AnyCompletes(report) ? ExitCode::kDone : ExitCode::kAnswerIsNo;
}

}  // namespace

Subcommand SweepCommand() {
  return {"sweep", "Time and memory of one step for several values of an option, or several plans",
          "  dc-sim sweep traces/qwen3-8b --cluster h200-8 --plan zero3-deepcompile \\\n"
          "    --vary stage=1,2,3 --vary gpus=2,4,8\n"
          "  dc-sim sweep traces/qwen3-8b --cluster h200-8 --plan zero3-deepcompile --plan "
          "zero3-eager \\\n"
          "    --vary gradient_accumulation_steps=1,2 --csv sweep.csv",
          [](CLI::App& app) -> std::function<ExitCode()> {
            const auto options = std::make_shared<SweepOptions>();
            DeclareStepInputs(app, options->question.step);
            app.get_option("--cluster")->required(false);
            app.add_option("--plan", options->question.plans,
                           "plan file (configs/plans/zero3.yaml); may be repeated")
                ->required()
                ->take_all()
                ->allow_extra_args(false);
            app.add_option("--vary", options->question.vary,
                           "key=a,b predicts a step for each value: batch, seq, gpus, cluster, "
                           "cluster.KEY (--cluster-set), or a key of the plan (--set); may be "
                           "repeated: every combination")
                ->take_all()
                ->allow_extra_args(false);
            AddCount(app, "--threads", options->question.threads, {1, 4096},
                     "all processors if left out");
            app.add_option("--json", options->json, "write all results as JSON; - is stdout");
            app.add_option("--csv", options->csv, "write the table as CSV; - is stdout");
            app.add_option("--plot", options->plot,
                           "draw step time and memory over the values of the first --vary (SVG)");
            return [options] { return RunSweep(*options); };
          }};
}

}  // namespace dcsim
