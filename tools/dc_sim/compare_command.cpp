#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

#include "model/base/error.h"
#include "tools/common/file.h"
#include "tools/common/json_text.h"
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

/// A result in its file, or all of a folder by name. Throws Error for a folder without any.
std::vector<std::string> ResultsIn(const std::string& path) {
  if (!IsDirectory(path)) {
    return {path};
  }
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    const bool is_result = name.ends_with(".json") || name.ends_with(".json.gz");
    if (is_result && name.find("timeline.json") == std::string::npos) {
      files.push_back((std::filesystem::path(path) / name).string());
    }
  }
  if (files.empty()) {
    throw Error(path + ": holds no result of dc-run (.json or .json.gz)");
  }
  std::sort(files.begin(), files.end());
  return files;
}

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
  std::vector<std::string> files;
  for (const std::string& path : options.measured) {
    const std::vector<std::string> found = ResultsIn(path);
    files.insert(files.end(), found.begin(), found.end());
  }
  CheckOutputs({{"--json", options.json}});
  MeasuredPredictor predictor(cluster, options.predicting);
  std::vector<Comparison> comparisons;
  std::map<std::string, std::vector<std::string>> files_by_gpu;
  Json pairs = Json::array();
  for (const std::string& file : files) {
    MeasuredPair pair = predictor.Predict(file);
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
  }
  NoteOtherGpus(files_by_gpu, cluster);
  if (!options.json.empty()) {
    const Json document = {{"format", "dc-comparison/1"}, {"comparisons", std::move(pairs)}};
    WriteFile(options.json, PrintJson(document));
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
      "  dc-sim compare traces/qwen3-8b/measured/h200-4/zero3.json.gz --cluster "
      "configs/clusters/h200-4.yaml\n"
      "  dc-sim compare traces/*/measured/h200-4 --cluster configs/clusters/h200-4.yaml",
      [](CLI::App& app) -> std::function<ExitCode()> {
        const auto options = std::make_shared<CompareOptions>();
        app.add_option("MEASURED", options->measured, "results of dc-run, or folders of them")
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
