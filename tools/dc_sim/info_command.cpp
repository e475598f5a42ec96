#include <iostream>
#include <memory>

#include "tools/common/load.h"
#include "tools/dc_sim/commands.h"
#include "tools/views/workload_text.h"

namespace dcsim {
namespace {

struct InfoOptions {
  std::string workload;
  std::string cluster;
};

ExitCode RunInfo(const InfoOptions& options) {
  const Workload workload = LoadWorkload(options.workload);
  std::cout << PrintWorkloadText(workload.graph);
  if (options.cluster.empty()) {
    std::cout << "\nwith --cluster FILE: which op times are measured on its GPUs\n";
    return ExitCode::kDone;
  }
  const Cluster cluster = LoadCluster(options.cluster);
  const auto profile = FindProfile(workload, cluster.gpu.name);
  std::cout << PrintCoverageText(workload.graph, profile ? &*profile : nullptr, cluster,
                                 options.workload);
  return ExitCode::kDone;
}

}  // namespace

Subcommand InfoCommand() {
  return {
      "info", "What a recorded workload holds, what is measured, and what is missing",
      "  dc-sim info traces/qwen3-8b\n"
      "  dc-sim info traces/qwen3-8b --cluster configs/clusters/h200-8.yaml",
      [](CLI::App& app) -> std::function<ExitCode()> {
        const auto options = std::make_shared<InfoOptions>();
        app.add_option("WORKLOAD", options->workload, "folder of a recorded workload")->required();
        app.add_option("--cluster", options->cluster, "cluster file, for what is measured");
        return [options] { return RunInfo(*options); };
      }};
}

}  // namespace dcsim
