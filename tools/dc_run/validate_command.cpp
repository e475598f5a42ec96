#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>

#include "model/base/error.h"
#include "model/ir/document.h"
#include "tools/common/file.h"
#include "tools/common/json_text.h"
#include "tools/common/predict_measured.h"
#include "tools/dc_run/commands.h"
#include "tools/dc_run/run_plans.h"
#include "tools/dc_run/suite.h"
#include "tools/dc_run/versions.h"
#include "tools/views/comparison_text.h"
#include "tools/views/difference_text.h"
#include "tools/views/timeline_trace.h"

namespace dcsim {
namespace {

struct ValidateOptions {
  std::string workload;
  std::string suite;
  std::string results;  // folder for a suite's results; empty: in the workloads' folders
  PlansToRun what;
};

/// Prints what was measured beside what was predicted. Called on rank 0's process.
void ShowCase(const Cluster& cluster,
              const std::string& name,
              const ExecutionCase& execution,
              const ExecutionResult& executed) {
  const ProfiledWorkload& workload = *execution.workload;
  const Cluster with_delays = WithDelaysOf(executed.result, cluster);
  Prediction prediction = PredictPlan(executed.result, workload, execution.plan, with_delays,
                                      /*keep_timeline=*/true);
  std::string text =
      PrintComparison({name, executed.result, std::move(prediction.result),
                       PredictWithHost(executed.result, workload, execution.plan, with_delays)});
  if (!executed.timelines.empty() && prediction.timeline && !prediction.stop) {
    // A schedule with a profile's footprints has the same tasks and works as one without.
    text += PrintDifferences(*prediction.timeline, executed.timelines.front(), execution.schedule,
                             execution.graph());
  }
  WriteFile("-", text + "\n");
}

ExitCode ValidatePlans(const ValidateOptions& options) {
  if (options.workload.empty() || options.what.cluster.empty() || options.what.plans.empty()) {
    throw Error("expected WORKLOAD, --cluster and --plan, or --suite");
  }
  const Cluster cluster = LoadCluster(options.what.cluster);
  const ProfiledWorkload loaded = LoadProfiledWorkload(options.workload, cluster.gpu.name);
  std::string command = "dc-run validate " + options.workload + " --gpus " +
                        std::to_string(options.what.gpus) + " --steps " +
                        std::to_string(options.what.steps) + MeasuringText(options.what);
  for (const std::string& change : options.what.overrides) {
    command += " --set " + change;
  }
  const bool completed =
      RunPlans(loaded, &cluster, options.what, command,
               [&](const ExecutionCase& execution, const ExecutionResult& executed) {
                 ShowCase(cluster, execution.plan_file, execution, executed);
               });
  return completed ? ExitCode::kDone : ExitCode::kAnswerIsNo;
}

/// "traces/qwen3-8b/measured/h200-4", made where it is missing.
std::string ResultFolder(const ValidateOptions& options,
                         const SuiteCase& each,
                         const std::string& cluster) {
  namespace fs = std::filesystem;
  const auto workload = fs::path(each.workload);
  const fs::path folder = options.results.empty()
                              ? workload / "measured" / cluster
                              : fs::path(options.results) / workload.filename() / cluster;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw SystemError(folder.string() + ": " + error.message());
  }
  return folder.string();
}

/// "zero3-accumulate-4", the name of a result without its ending.
std::string ResultName(const std::string& plan, const SuiteCase& each) {
  return PlanName(plan) + (each.name.empty() ? "" : "-" + each.name);
}

/// Executes one case of a suite; returns whether all its plans completed.
bool RunCase(const ValidateOptions& options,
             const Suite& suite,
             const SuiteCase& each,
             const Cluster& cluster) {
  const ProfiledWorkload loaded = LoadProfiledWorkload(each.workload, cluster.gpu.name);
  const std::string folder = ResultFolder(options, each, cluster.name);
  PlansToRun what = options.what;
  what.plans = each.plans;
  what.overrides = each.changes;
  what.gpus = suite.gpus;
  what.warmup = suite.warmup;
  what.steps = suite.steps;
  const auto keep = [&](const ExecutionCase& execution, const ExecutionResult& executed) {
    const std::string base = folder + "/" + ResultName(execution.plan_file, each);
    WriteFile(base + ".json.gz", PrintJson(PrintResult(executed.result)));
    if (each.timelines && !executed.timelines.empty()) {
      WriteFile(base + ".timeline.json.gz",
                PrintTimelineTrace(executed.timelines, execution.schedule, execution.graph(),
                                   Versions()));
    }
    if (executed.result.outcome == "completed") {
      ShowCase(cluster, base + ".json.gz", execution, executed);
    }
  };
  // The suite's name comes last: runs of one go are told by it (tools/accuracy.py).
  return RunPlans(loaded, &cluster, what,
                  "dc-run validate" + MeasuringText(what) + " --suite " + options.suite, keep);
}

/// All results of the suite that are there, predicted again.
std::string SuiteTable(const ValidateOptions& options, const Suite& suite, const Cluster& cluster) {
  std::vector<Comparison> comparisons;
  for (const SuiteCase& each : suite.cases) {
    MeasuredPredictor predictor(cluster, {.workload = each.workload});
    const auto compare = [&](MeasuredDocument result) {
      if (result.document.value("plan", Json()).is_null()) {
        return;
      }
      const std::string file = result.source;
      MeasuredPair pair = predictor.Predict(std::move(result));
      comparisons.push_back(
          {file, std::move(pair.measured), std::move(pair.predicted), std::move(pair.with_host)});
    };
    const std::string folder = ResultFolder(options, each, cluster.name);
    for (const std::string& plan : each.plans) {
      const std::string file = folder + "/" + ResultName(plan, each) + ".json.gz";
      if (FileExists(file)) {
        ForEachMeasured(file, compare);
      }
    }
  }
  return PrintComparisonTable(comparisons);
}

/// Plans that run out of memory are results like the others. A case that cannot run does not stop
/// those behind it; the first one's error is thrown at the end.
ExitCode ValidateSuite(const ValidateOptions& options) {
  const Suite suite = LoadSuite(options.suite);
  const Cluster cluster = LoadCluster(suite.cluster);
  bool completed = true;
  std::exception_ptr failed;
  for (std::size_t i = 0; i < suite.cases.size(); ++i) {
    std::cerr << "case " << i + 1 << " of " << suite.cases.size() << ": " << suite.cases[i].workload
              << "\n";
    try {
      completed = RunCase(options, suite, suite.cases[i], cluster) && completed;
    } catch (const std::runtime_error& error) {
      std::cerr << error.what() << "; the other cases go on\n";
      failed = failed ? failed : std::current_exception();
    }
  }
  WriteFile("-", SuiteTable(options, suite, cluster));
  if (failed) {
    std::rethrow_exception(failed);
  }
  return completed ? ExitCode::kDone : ExitCode::kAnswerIsNo;
}

ExitCode RunValidate(const ValidateOptions& options) {
  return options.suite.empty() ? ValidatePlans(options) : ValidateSuite(options);
}

}  // namespace

Subcommand ValidateCommand() {
  return {
      "validate", "Execute schedules and show prediction beside measurement",
      "  dc-run validate traces/llama-3.2-1b --plan configs/plans/zero3.yaml --gpus 4 --cluster "
      "configs/clusters/h200-4.yaml\n"
      "  dc-run validate --suite configs/suites/h200-4.yaml:order",
      [](CLI::App& app) -> std::function<ExitCode()> {
        const auto options = std::make_shared<ValidateOptions>();
        PlansToRun& what = options->what;
        app.add_option("WORKLOAD", options->workload, "folder of a recorded workload");
        app.add_option("--plan", what.plans, "plan file; repeat to execute several")
            ->take_all()
            ->allow_extra_args(false);
        DeclarePlansToRun(app, what);
        app.add_option("--suite", options->suite,
                       "FILE:NAME, cases to execute, one after the other");
        app.add_option("--results", options->results,
                       "folder for a suite's results; default WORKLOAD/measured/CLUSTER");
        return [options] { return RunValidate(*options); };
      }};
}

}  // namespace dcsim
