#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "tools/common/compiled_form.h"
#include "tools/common/file.h"
#include "tools/common/load.h"
#include "tools/dc_sim/commands.h"
#include "tools/views/workload_text.h"

namespace dcsim {
namespace {

struct InfoOptions {
  std::string workload;
  std::string cluster;
};

/// The recorded graph, and behind it the compiled forms that lie beside it.
std::vector<ProfiledWorkload> LoadForms(const std::string& folder,
                                        const std::optional<Cluster>& cluster) {
  const ProfiledWorkload recorded = cluster ? LoadProfiledWorkload(folder, cluster->gpu.name)
                                            : ProfiledWorkload{LoadWorkload(folder), std::nullopt};
  std::vector<ProfiledWorkload> forms = {recorded};
  for (const int stage : {3, 1}) {
    if (FileExists(FormFile(folder, stage))) {
      forms.push_back(TakeForm(recorded, {Backend::kInductor, stage}, std::cerr));
    }
  }
  if (FileExists(FormFile(folder, 3, true))) {
    forms.push_back(TakeForm(recorded, {Backend::kInductor, 3, {}, true}, std::cerr));
  }
  return forms;
}

ExitCode RunInfo(const InfoOptions& options) {
  std::optional<Cluster> cluster;
  if (!options.cluster.empty()) {
    cluster = LoadCluster(options.cluster);
  }
  const std::vector<ProfiledWorkload> forms = LoadForms(options.workload, cluster);
  std::string text = PrintWorkloadText(forms.front().workload.graph);
  for (std::size_t i = 1; i < forms.size(); ++i) {
    text += PrintFormText(forms[i].workload.graph);
  }
  if (forms.size() == 1) {
    text += "\nnot compiled; recorded by: " + CompiledCommand(forms.front().workload) + "\n";
  }
  for (const ProfiledWorkload& form : forms) {
    if (cluster) {
      text += PrintCoverageText(form.workload.graph, form.profile ? &*form.profile : nullptr,
                                *cluster, options.workload);
    }
  }
  if (!cluster) {
    text += "\nwith --cluster FILE: which op times are measured on its GPUs\n";
  }
  std::cout << text;
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
