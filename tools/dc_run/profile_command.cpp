#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "exec/device/machine.h"
#include "exec/profiler/profile_workload.h"
#include "model/base/error.h"
#include "model/base/text.h"
#include "model/ir/profile_reader.h"
#include "tools/common/count_option.h"
#include "tools/common/file.h"
#include "tools/common/load.h"
#include "tools/dc_run/commands.h"
#include "tools/dc_run/executable_form.h"
#include "tools/dc_run/versions.h"

namespace dcsim {
namespace {

struct ProfileOptions {
  std::vector<std::string> workloads;
  exec::ProfileSettings settings;
  std::string backend = "aten";
  int stage = 3;  // of ZeRO, whose compiled graph
  std::string out;
};

std::string CommandOf(const ProfileOptions& options, const std::string& workload) {
  return "dc-run profile " + workload + " --steps " + std::to_string(options.settings.steps) +
         " --trained-steps " + std::to_string(options.settings.trained_steps) +
         (options.backend == "aten"
              ? ""
              : " --backend " + options.backend + " --stage " + std::to_string(options.stage));
}

void PrintSummary(const Profile& profile, const std::string& path) {
  Duration busy;
  std::size_t kernels = 0;
  for (const OpProfile& op : profile.ops) {
    busy += op.device_time;
    kernels += op.kernels.size();
  }
  std::cout << path << ": " << profile.ops.size() << " ops, " << kernels << " kernels, "
            << FormatDuration(busy) << " busy in a step of " << FormatDuration(profile.step_time)
            << ", " << FormatDuration(profile.kernel_gap) << " between kernels\n";
}

void ProfileOne(const ProfileOptions& options, const std::string& folder) {
  const ExecutableForm form =
      TakeExecutable({LoadWorkload(folder), {}}, options.backend, options.stage, "cuda");
  const Graph& graph = form.workload.workload.graph;
  exec::ProfileSettings settings = options.settings;
  settings.binaries = form.found();
  settings.report = [&folder](const std::string& line) {
    std::cerr << folder << ": " << line << "\n";
  };
  Profile profile = exec::ProfileWorkload(graph, settings);
  profile.gpu = exec::GpuName();
  profile.origin = Json({{"command", CommandOf(options, folder)},
                         {"date", exec::Today()},
                         {"versions", Versions()},
                         {"machine", exec::MachineReport()}})
                       .dump();
  const std::filesystem::path target = options.out.empty() ? folder : options.out;
  const std::string path = (target / ProfileFileName(profile.gpu, graph)).string();
  WriteFile(path, PrintProfile(profile));
  PrintSummary(profile, path);
}

ExitCode RunProfile(const ProfileOptions& options) {
  if (exec::GpuCount() == 0) {
    throw SystemError("no GPU found; a profile is measured on one");
  }
  const exec::ProfileSettings& settings = options.settings;
  if (settings.steps < 1) {
    throw Error("--steps " + std::to_string(settings.steps) + ": expected 1 or more");
  }
  if (settings.trained_steps < 0) {
    throw Error("--trained-steps " + std::to_string(settings.trained_steps) +
                ": expected 0 or more");
  }
  if (!options.out.empty()) {
    RequireFolder("--out", options.out);
  }
  for (const std::string& workload : options.workloads) {
    ProfileOne(options, workload);
  }
  return ExitCode::kDone;
}

}  // namespace

Subcommand ProfileCommand() {
  return {
      "profile", "Times and allocations of every op of a workload, measured on this GPU",
      "  dc-run profile traces/llama-3.2-1b\n"
      "  dc-run profile traces/qwen3-8b --steps 20\n"
      "  dc-run profile traces/llama-3.2-1b --backend inductor --stage 3",
      [](CLI::App& app) -> std::function<ExitCode()> {
        const auto options = std::make_shared<ProfileOptions>();
        app.add_option("WORKLOAD", options->workloads, "folders of recorded workloads")->required();
        AddCount(app, "--steps", options->settings.steps, {1, 1'000'000},
                 "steps with kernel records");
        AddCount(app, "--trained-steps", options->settings.trained_steps, {0, 1'000'000},
                 "steps that train the weights before");
        DeclareForm(app, options->backend, options->stage);
        app.add_option("--out", options->out, "folder to write to; default each workload's own");
        return [options] { return RunProfile(*options); };
      }};
}

}  // namespace dcsim
