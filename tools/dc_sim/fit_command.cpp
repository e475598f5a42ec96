#include <algorithm>
#include <iostream>
#include <memory>
#include <mutex>

#include "sim/search/parallel.h"
#include "tools/common/config_path.h"
#include "tools/common/count_option.h"
#include "tools/common/deepspeed_config.h"
#include "tools/common/file.h"
#include "tools/common/fit_search.h"
#include "tools/common/json_text.h"
#include "tools/common/progress.h"
#include "tools/common/recorder.h"
#include "tools/dc_sim/commands.h"
#include "tools/views/fit_text.h"

namespace dcsim {
namespace {

struct FitOptions {
  StepOptions step;
  bool no_record = false;
  unsigned threads = 0;
  std::string json;
};

/// What the command is doing, for the thread that shows it.
class Activity {
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

/// Makes recordings where dcrecord is installed; empty where it is not, or not asked for.
MakeRecording RecorderFor(const FitOptions& options,
                          const RecordingShelf& shelf,
                          Activity& activity) {
  const auto recorder = options.no_record ? std::nullopt : FindRecorder();
  if (!recorder) {
    return {};
  }
  return [recorder, &shelf, &activity](const AskedRecording& asked) {
    const std::string command = shelf.Command(asked);
    activity.Set("recording, " + command);
    std::string fault = RunRecorder(*recorder, shelf.Words(asked));
    activity.Set("");
    std::cerr << (fault.empty() ? "fit: recorded with " : "fit: failed: ") << command << "\n";
    return fault;
  };
}

FitBase BaseOf(const StepOptions& options, const LoadedStep& step, const RecordingShelf& shelf) {
  const std::string file = FindConfig(options.plan, "plans", "plan file");
  const YamlDocument plan = LoadYaml(file, "plan file");
  const bool is_deepspeed = IsDeepSpeedConfig(plan.json());
  const bool is_spec =
      plan.json().is_object() && plan.json().value("format", Json()) == "dc-plan-spec/1";
  if (!is_deepspeed && !is_spec) {
    std::cerr
        << "fit: " << file
        << " is a plan with every decision made: no change of it is tried; give a plan spec\n";
  }
  return {options, step, shelf, is_deepspeed, !is_deepspeed && !is_spec};
}

ExitCode RunFit(const FitOptions& options) {
  const LoadedStep step = LoadStep(options.step);
  CheckOutputs({{"--json", options.json}});
  StepOptions own = options.step;
  own.workload = step.workload.folder;
  own.sizes = {};
  RecordingShelf shelf(LoadWorkload(own.workload), step.workload.graph.backend());
  const FitBase base = BaseOf(own, step, shelf);
  Activity activity;
  FitSearch search;
  search.threads = ThreadsFor(options.threads);
  search.done = &activity.done;
  search.make = RecorderFor(options, shelf, activity);
  const FitFindings findings = [&] {
    const ProgressTicker ticker([&] { return activity.Text(); });
    return FindFits(base, shelf, search);
  }();
  if (!options.json.empty()) {
    WriteFile(options.json, PrintJson(PrintFit(findings)));
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
            options->step.plan = "zero3-deepcompile";
            DeclareStepOptions(app, options->step);
            app.get_option("--plan")->required(false)->description(
                "plan file or DeepSpeed JSON; zero3-deepcompile if left out");
            app.add_flag("--no-record", options->no_record,
                         "name the commands that record other sizes instead of running dcrecord");
            AddCount(app, "--threads", options->threads, {1, 4096}, "all processors if left out");
            app.add_option("--json", options->json, "write all predictions as JSON; - is stdout");
            return [options] { return RunFit(*options); };
          }};
}

}  // namespace dcsim
