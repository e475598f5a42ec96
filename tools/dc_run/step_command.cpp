#include <CLI/CLI.hpp>
#include <memory>

#include "model/base/error.h"
#include "model/ir/collective_record.h"
#include "model/ir/plan_reader.h"
#include "tools/common/file.h"
#include "tools/common/json_text.h"
#include "tools/common/load.h"
#include "tools/dc_run/commands.h"
#include "tools/dc_run/run_plans.h"
#include "tools/views/measured_text.h"

namespace dcsim {
namespace {

struct RunStepOptions {
  std::string workload;
  PlansToRun what;
  std::string save_collectives;
};

std::string CommandOf(const RunStepOptions& options) {
  std::string command = "dc-run step " + options.workload;
  for (const std::string& plan : options.what.plans) {
    command += " --plan " + plan;
  }
  for (const std::string& change : options.what.overrides) {
    command += " --set " + change;
  }
  return command + " --gpus " + std::to_string(options.what.gpus) + " --warmup " +
         std::to_string(options.what.warmup) + " --steps " + std::to_string(options.what.steps) +
         (options.what.communicate ? "" : " --no-communication") + MeasuringText(options.what);
}

ExitCode RunSteps(const RunStepOptions& options) {
  if (!options.save_collectives.empty() && options.what.plans.size() != 1) {
    throw Error("--save-collectives writes those of one plan; give one --plan");
  }
  std::optional<Cluster> cluster;
  ProfiledWorkload loaded;
  if (options.what.cluster.empty()) {
    loaded.workload = LoadWorkload(options.workload);
  } else {
    cluster = LoadCluster(options.what.cluster);
    loaded = LoadProfiledWorkload(options.workload, cluster->gpu.name);
  }
  CheckOutputs({{"--save-collectives", options.save_collectives}});
  const bool completed =
      RunPlans(loaded, cluster ? &*cluster : nullptr, options.what, CommandOf(options),
               [&](const ExecutionCase& execution, const ExecutionResult& executed) {
                 const Graph& graph = execution.graph();
                 if (!options.save_collectives.empty()) {
                   WriteFile(options.save_collectives,
                             PrintJson(PrintCollectiveRecord(
                                 execution.schedule, PrintPlan(execution.plan, graph), graph)));
                 }
                 WriteFile("-", PrintMeasuredText(executed.result, execution.plan_file));
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
        PlansToRun& what = options->what;
        app.add_option("WORKLOAD", options->workload, "folder of a recorded workload")->required();
        app.add_option("--plan", what.plans, "plan file; repeat to execute several")
            ->required()
            ->take_all()
            ->allow_extra_args(false);
        DeclarePlansToRun(app, what);
        app.add_flag("--trace,!--no-trace", what.trace, "record the kernels of one more step");
        app.add_option("--save-collectives", options->save_collectives,
                       "write the collectives of a step; --plan takes the file");
        return [options] { return RunSteps(*options); };
      }};
}

}  // namespace dcsim
