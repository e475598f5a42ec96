#include <filesystem>
#include <memory>

#include "model/base/error.h"
#include "model/base/text.h"
#include "model/ir/plan_reader.h"
#include "model/ir/result_reader.h"
#include "model/passes/resolve.h"
#include "sim/analysis/predict.h"
#include "tools/common/file.h"
#include "tools/common/load.h"
#include "tools/dc_sim/commands.h"
#include "tools/views/comparison_text.h"

namespace dcsim {
namespace {

namespace fs = std::filesystem;

struct CompareOptions {
  std::vector<std::string> measured;
  std::string cluster;
  std::string workload;
  std::string json;
};

/// The workload that a measured result lies in: traces/NAME/measured/....
std::string WorkloadFolder(const CompareOptions& options, const std::string& file) {
  if (!options.workload.empty()) {
    return options.workload;
  }
  for (fs::path folder = fs::path(file).parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    if (FileExists((folder / "graph.json.gz").string())) {
      return folder.string();
    }
  }
  throw Error(file + ": no folder above it holds a graph.json.gz; name it with --workload");
}

/// What the measured plan is predicted to take on the cluster.
Comparison Compare(const CompareOptions& options, const std::string& file) {
  const Json document = ParseJson(ReadFile(file), file);
  const Locator locate = PointerLocator(file);
  Result measured = ReadResult(document, locate);
  if (measured.origin != Origin::kMeasured) {
    throw Error(file + ": /origin: expected a measured result, found a predicted one");
  }
  if (measured.plan.is_null()) {
    throw Error(file + ": /plan: holds no plan to predict: " + measured.outcome);
  }
  const Workload workload = LoadWorkload(WorkloadFolder(options, file));
  if (workload.graph.hash != measured.graph_hash) {
    throw Error(file + ": /workload/graph: measured on graph " + HexDigits(measured.graph_hash) +
                ", " + workload.folder + " holds " + HexDigits(workload.graph.hash));
  }
  const Locator in_plan = [&locate](const std::string& pointer) {
    return locate("/plan" + pointer);
  };
  const Plan plan = ReadPlan(measured.plan, workload.graph, in_plan);
  const auto faults = FindPlanFaults(plan, workload.graph);
  if (!faults.empty()) {
    throw Error(file + ": " + Join(faults, "\n" + file + ": "));
  }
  const Cluster cluster = LoadCluster(options.cluster);
  if (plan.ranks > cluster.gpus()) {
    throw Error(file + ": measured on " + std::to_string(plan.ranks) + " GPUs, " + cluster.name +
                " has " + std::to_string(cluster.gpus()));
  }
  const auto profile = FindProfile(workload, cluster.gpu.name);
  const PredictionInputs inputs{workload.graph, profile ? &*profile : nullptr, cluster};
  Prediction prediction = Predict(LowerFor(plan, inputs), plan, inputs, /*keep_timeline=*/false);
  return {file, std::move(measured), std::move(prediction.result)};
}

ExitCode RunCompare(const CompareOptions& options) {
  std::vector<Comparison> comparisons;
  Json pairs = Json::array();
  for (const std::string& file : options.measured) {
    comparisons.push_back(Compare(options, file));
    if (!options.json.empty()) {
      pairs.push_back({{"file", file},
                       {"predicted", PrintResult(comparisons.back().predicted)},
                       {"measured", ParseJson(ReadFile(file), file)}});
    }
  }
  if (!options.json.empty()) {
    const Json document = {{"format", "dc-comparison/1"}, {"comparisons", std::move(pairs)}};
    WriteFile(options.json, document.dump(1) + "\n");
  }
  if (options.json != "-") {
    WriteFile("-", comparisons.size() == 1 ? PrintComparison(comparisons.front())
                                           : PrintComparisonTable(comparisons));
  }
  return ExitCode::kDone;
}

}  // namespace

Subcommand CompareCommand() {
  return {
      "compare", "Predict what was measured, and show both",
      "  dc-sim compare traces/qwen3-8b/measured/h200-4/zero3.json --cluster "
      "configs/clusters/h200-4.yaml\n"
      "  dc-sim compare traces/*/measured/h200-4/*.json --cluster configs/clusters/h200-4.yaml",
      [](CLI::App& app) -> std::function<ExitCode()> {
        const auto options = std::make_shared<CompareOptions>();
        app.add_option("MEASURED", options->measured, "results of dc-run step")->required();
        app.add_option("--cluster", options->cluster, "cluster file to predict with")->required();
        app.add_option("--workload", options->workload,
                       "workload folder; default the one that the result lies in");
        app.add_option("--json", options->json, "write both results as JSON; - is stdout");
        return [options] { return RunCompare(*options); };
      }};
}

}  // namespace dcsim
