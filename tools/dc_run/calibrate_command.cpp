#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "exec/calibrate/collective_benchmark.h"
#include "exec/calibrate/contention_benchmark.h"
#include "exec/calibrate/copy_engine_benchmark.h"
#include "exec/calibrate/drift_benchmark.h"
#include "exec/calibrate/host_benchmark.h"
#include "exec/calibrate/host_copy_benchmark.h"
#include "exec/calibrate/memory_benchmark.h"
#include "exec/device/machine.h"
#include "exec/launch/gpu_rank.h"
#include "exec/launch/rank_processes.h"
#include "model/base/error.h"
#include "model/base/text.h"
#include "tools/common/count_option.h"
#include "tools/common/file.h"
#include "tools/common/load.h"
#include "tools/dc_run/cluster_yaml.h"
#include "tools/dc_run/commands.h"
#include "tools/dc_run/contention_yaml.h"
#include "tools/dc_run/versions.h"

namespace dcsim {
namespace {

struct CalibrateOptions {
  int gpus = 1;
  std::string gpu;  // GPU file, as the cluster file names it
  std::string out = "-";
  std::string contention;  // file for what streams cost each other; empty: not measured
};

std::string CommandOf(const CalibrateOptions& options) {
  return "dc-run calibrate --gpus " + std::to_string(options.gpus) + " --gpu " + options.gpu +
         " --out " + options.out +
         (options.contention.empty() ? "" : " --contention " + options.contention);
}

void Report(const std::string& line) {
  std::cerr << "calibrate: " << line << "\n";
}

int CalibrateRank(const CalibrateOptions& options,
                  const exec::RankIdentity& identity,
                  const exec::RendezvousAddress& address) {
  exec::SelectGpu(identity);
  exec::Rendezvous rendezvous(address, identity);
  CalibrationResult result;
  if (identity.rank == 0) {
    Report("host calls");
    result.host = exec::BenchmarkHost();
    Report("memory patterns");
    result.memory = exec::BenchmarkMemory();
  }
  rendezvous.Exchange("single", "");
  if (identity.rank == 0) {
    Report("copies from and to the host");
  }
  result.host_copies = exec::BenchmarkHostCopies(rendezvous);
  const auto communicators =
      exec::JoinCommunicators(rendezvous, identity, identity.size > 1 ? 2 : 1);
  result.collective_host = exec::BenchmarkCollectiveHost(*communicators.front());
  if (identity.size > 1) {
    const auto report = identity.rank == 0 ? Report : [](const std::string&) {};
    result.collectives = exec::BenchmarkCollectives(*communicators.front(), rendezvous, {}, report);
    report("copy engines");
    result.copy_engines = exec::BenchmarkCopyEngines(*communicators.front(), rendezvous);
    if (!options.contention.empty()) {
      result.contention = exec::BenchmarkContention(communicators, rendezvous, report);
      report("how ranks drift apart");
      result.drift = exec::BenchmarkDrift(*communicators.front(), rendezvous);
    }
  }
  if (identity.rank == 0) {
    result.machine = exec::MachineReport();
    result.versions = Versions();
    result.date = exec::Today();
    WriteFile(options.out, PrintClusterYaml(result, options.gpus, options.gpu, CommandOf(options)));
    if (!result.contention.empty()) {
      WriteFile(options.contention, PrintContentionYaml(result, options.gpus, CommandOf(options)));
    }
  }
  rendezvous.Finish();
  return 0;
}

ExitCode RunCalibrate(const CalibrateOptions& options) {
  const auto rank = [&options](const exec::RankIdentity& identity,
                               const exec::RendezvousAddress& address) {
    return CalibrateRank(options, identity, address);
  };
  if (options.gpus < 1) {
    throw Error("--gpus " + std::to_string(options.gpus) + ": expected 1 or more");
  }
  if (options.gpus < 2 && !options.contention.empty()) {
    throw Error("--contention: expected --gpus 2 or more, got " + std::to_string(options.gpus));
  }
  CheckOutputs({{"--out", options.out}, {"--contention", options.contention}});
  if (const auto identity = exec::FindLauncherIdentity()) {
    rank(*identity, exec::LauncherRendezvous(*identity));
  } else {
    exec::RunRankProcesses(options.gpus, rank);
  }
  return ExitCode::kDone;
}

}  // namespace

Subcommand CalibrateCommand() {
  return {
      "calibrate", "Measure collectives, memory and host calls of this machine into a cluster file",
      "  dc-run calibrate --gpus 4 --gpu ../gpus/h200.yaml --out configs/clusters/h200-4.yaml",
      [](CLI::App& app) -> std::function<ExitCode()> {
        const auto options = std::make_shared<CalibrateOptions>();
        AddCount(app, "--gpus", options->gpus, {1, 1'000'000}, "GPUs of this machine to use");
        app.add_option("--gpu", options->gpu, "GPU file, as a path from the cluster file's folder")
            ->required();
        app.add_option("--contention", options->contention,
                       "file for the contention of a GPU file, measured on two or more GPUs; "
                       "left out, it is not measured");
        app.add_option("--out", options->out, "cluster file to write; - is stdout");
        return [options] { return RunCalibrate(*options); };
      }};
}

}  // namespace dcsim
