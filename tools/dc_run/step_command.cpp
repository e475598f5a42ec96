#include <memory>

#include "model/base/error.h"
#include "model/base/text.h"
#include "model/passes/lower.h"
#include "model/passes/verify.h"
#include "tools/common/file.h"
#include "tools/common/load.h"
#include "tools/dc_run/commands.h"
#include "tools/dc_run/rank_job.h"
#include "tools/views/measured_text.h"
#include "tools/views/timeline_trace.h"

namespace dcsim {
namespace {

struct RunStepOptions {
  std::string workload;
  std::vector<std::string> plans;
  std::vector<std::string> overrides;
  int gpus = 1;
  std::string device = "cuda";
  int warmup = 5;
  int steps = 20;
  bool trace = true;
  std::string out;
};

std::string CommandOf(const RunStepOptions& options) {
  std::string command = "dc-run step " + options.workload;
  for (const std::string& plan : options.plans) {
    command += " --plan " + plan;
  }
  for (const std::string& change : options.overrides) {
    command += " --set " + change;
  }
  return command + " --gpus " + std::to_string(options.gpus) + " --warmup " +
         std::to_string(options.warmup) + " --steps " + std::to_string(options.steps);
}

ExecutionSettings SettingsOf(const RunStepOptions& options) {
  if (options.gpus < 1 || options.warmup < 1 || options.steps < 1) {
    throw Error("--gpus, --warmup and --steps: expected 1 or more each");
  }
  if (options.device != "cuda" && options.device != "cpu") {
    throw Error("--device " + options.device + ": expected cuda or cpu");
  }
  ExecutionSettings settings;
  settings.gpus = options.gpus;
  settings.on_cpu = options.device == "cpu";
  settings.measure.warmup_steps = options.warmup;
  settings.measure.steps = options.steps;
  settings.measure.trace = options.trace;
  settings.command = CommandOf(options);
  return settings;
}

/// "plans/zero3.yaml" -> "zero3".
std::string NameOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
  return file.substr(0, file.find('.'));
}

void WriteResult(const RunStepOptions& options,
                 const Graph& graph,
                 const std::vector<ExecutionCase>& cases,
                 std::size_t index,
                 const ExecutionResult& executed) {
  WriteFile("-", PrintMeasuredText(executed.result, cases[index].plan_file));
  if (options.out.empty()) {
    return;
  }
  const std::string base = options.out + "/" + graph.name + "-" + NameOf(cases[index].plan_file) +
                           "-" + std::to_string(options.gpus);
  WriteFile(base + ".json", PrintResult(executed.result).dump(1) + "\n");
  if (executed.timeline) {
    WriteFile(base + "-timeline.json.gz",
              PrintTimelineTrace(*executed.timeline, cases[index].schedule, graph));
  }
}

ExitCode RunSteps(const RunStepOptions& options) {
  const ExecutionSettings settings = SettingsOf(options);
  const Workload workload = LoadWorkload(options.workload);
  std::vector<Override> overrides;
  for (const std::string& text : options.overrides) {
    overrides.push_back(ParseOverride(text));
  }
  std::vector<ExecutionCase> cases;
  for (const std::string& file : options.plans) {
    Plan plan = LoadPlan(file, overrides, workload.graph, options.gpus);
    Schedule schedule = Lower(plan, workload.graph, nullptr, {});
    RequireCorrect(schedule, workload.graph);
    cases.push_back({file, std::move(plan), std::move(schedule)});
  }
  const bool completed = ExecuteCases(
      workload.graph, cases, settings, [&](std::size_t index, const ExecutionResult& executed) {
        WriteResult(options, workload.graph, cases, index, executed);
      });
  return completed ? ExitCode::kDone : ExitCode::kAnswerIsNo;
}

}  // namespace

Subcommand StepCommand() {
  return {
      "step", "Execute schedules and measure time and memory",
      "  dc-run step traces/llama-3.2-1b --plan configs/plans/zero3.yaml --gpus 2\n"
      "  dc-run step traces/tiny-llama --plan configs/plans/zero1.yaml --plan "
      "configs/plans/zero3.yaml --gpus 4 --device cpu",
      [](CLI::App& app) -> std::function<ExitCode()> {
        const auto options = std::make_shared<RunStepOptions>();
        app.add_option("WORKLOAD", options->workload, "folder of a recorded workload")->required();
        app.add_option("--plan", options->plans, "plan file; repeat to execute several")
            ->required()
            ->take_all()
            ->allow_extra_args(false);
        app.add_option("--set", options->overrides, "key=value changes a field of every plan")
            ->take_all()
            ->allow_extra_args(false);
        app.add_option("--gpus", options->gpus, "ranks of this machine, a GPU each");
        app.add_option("--device", options->device, "cuda, or cpu: ranks as threads");
        app.add_option("--warmup", options->warmup, "steps before the measured ones");
        app.add_option("--steps", options->steps, "measured steps");
        app.add_flag("--trace,!--no-trace", options->trace, "record the kernels of one more step");
        app.add_option("--out", options->out, "folder for results and timelines");
        return [options] { return RunSteps(*options); };
      }};
}

}  // namespace dcsim
