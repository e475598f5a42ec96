#include <memory>

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
  std::string workload;
  std::string json;
  OpTimes times = OpTimes::kProfiled;
};

ExitCode RunCompare(const CompareOptions& options) {
  const Cluster cluster = LoadCluster(options.cluster);
  std::vector<Comparison> comparisons;
  Json pairs = Json::array();
  for (const std::string& file : options.measured) {
    MeasuredPair pair = PredictMeasured(file, options.workload, cluster, options.times);
    if (!options.json.empty()) {
      pairs.push_back({{"file", file},
                       {"predicted", PrintResult(pair.predicted)},
                       {"measured", std::move(pair.document)}});
    }
    comparisons.push_back({file, std::move(pair.measured), std::move(pair.predicted)});
  }
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
      "  dc-sim compare traces/qwen3-8b/measured/h200-4/zero3.json --cluster "
      "configs/clusters/h200-4.yaml\n"
      "  dc-sim compare traces/*/measured/h200-4/*.json --cluster configs/clusters/h200-4.yaml",
      [](CLI::App& app) -> std::function<ExitCode()> {
        const auto options = std::make_shared<CompareOptions>();
        app.add_option("MEASURED", options->measured, "results of dc-run step")->required();
        app.add_option("--cluster", options->cluster, "cluster file to predict with")->required();
        app.add_option("--workload", options->workload,
                       "workload folder; default the one that the result lies in");
        DeclareOpTimes(app, options->times);
        app.add_option("--json", options->json, "write both results as JSON; - is stdout");
        return [options] { return RunCompare(*options); };
      }};
}

}  // namespace dcsim
