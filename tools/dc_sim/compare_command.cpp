#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>

#include "model/base/error.h"
#include "tools/common/answer_json.h"
#include "tools/common/file.h"
#include "tools/common/predict_measured.h"
#include "tools/common/step_options.h"
#include "tools/dc_sim/commands.h"
#include "tools/views/comparison_text.h"

namespace dcsim {
namespace {

struct CompareOptions {
  std::vector<std::string> measured;
  std::string cluster;
  std::vector<std::string> cluster_overrides;
  MeasuredOptions predicting;
  std::string json;
};

/// The GPU that a result was measured on; nothing where it does not say.
std::string GpuOf(const Json& result) {
  const Json::json_pointer name("/machine/gpu");
  return result.contains(name) && result[name].is_string() ? result[name].get<std::string>() : "";
}

/// Says on stderr which results were measured on another GPU than the cluster's.
void NoteOtherGpus(const std::map<std::string, std::vector<std::string>>& files_by_gpu,
                   const Cluster& cluster) {
  for (const auto& [gpu, files] : files_by_gpu) {
    if (gpu.empty() || gpu == cluster.gpu.name) {
      continue;
    }
    std::cerr << files.front()
              << (files.size() > 1 ? " and " + std::to_string(files.size() - 1) + " more" : "")
              << ": measured on " << gpu << ", predicted for " << cluster.gpu.name << " of "
              << cluster.name << "\n";
  }
}

ExitCode RunCompare(const CompareOptions& options) {
  const Cluster cluster = LoadChangedCluster(options.cluster, options.cluster_overrides);
  CheckOutputs({{"--json", options.json}});
  MeasuredPredictor predictor(cluster, options.predicting);
  std::vector<Comparison> comparisons;
  std::map<std::string, std::vector<std::string>> files_by_gpu;
  Json pairs = Json::array();
  const auto predict = [&](MeasuredDocument measured) {
    const std::string file = measured.source;
    MeasuredPair pair = predictor.Predict(std::move(measured));
    files_by_gpu[GpuOf(pair.document)].push_back(file);
    if (!options.json.empty()) {
      Json entry = {{"file", file},
                    {"predicted", PrintResult(pair.predicted)},
                    {"measured", std::move(pair.document)}};
      if (pair.with_host) {
        entry["with_host"] = {{"slowdown", pair.with_host->slowdown},
                              {"predicted", PrintResult(pair.with_host->predicted)}};
      }
      pairs.push_back(std::move(entry));
    }
    comparisons.push_back(
        {file, std::move(pair.measured), std::move(pair.predicted), std::move(pair.with_host)});
  };
  for (const std::string& path : options.measured) {
    ForEachMeasured(path, predict);
  }
  NoteOtherGpus(files_by_gpu, cluster);
  if (!options.json.empty()) {
    const Json document = {{"format", "dc-comparison/1"}, {"comparisons", std::move(pairs)}};
    WriteFile(options.json, PrintAnswer(document));
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
      "  dc-sim compare traces/qwen3-8b/measured/h200-4.jsonl.xz:zero3 --cluster "
      "configs/clusters/h200-4.yaml\n"
      "  dc-sim compare traces/*/measured/h200-4.jsonl.xz --cluster configs/clusters/h200-4.yaml",
      [](CLI::App& app) -> std::function<ExitCode()> {
        const auto options = std::make_shared<CompareOptions>();
        app.add_option("MEASURED", options->measured,
                       "results of dc-run, packs of them, or folders")
            ->required();
        app.add_option("--cluster", options->cluster, "cluster file to predict with")->required();
        DeclareClusterOverrides(app, options->cluster_overrides);
        app.add_option("--workload", options->predicting.workload,
                       "workload folder; default the one that the result lies in");
        DeclareOpTimes(app, options->predicting.times);
        app.add_flag_callback(
            "--no-host", [options] { options->predicting.with_host = false; },
            "do not predict once more with the pace of the measured step's host");
        app.add_option("--json", options->json, "write both results as JSON; - is stdout");
        return [options] { return RunCompare(*options); };
      }};
}

}  // namespace dcsim
