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
#include "exec/calibrate/launch_fit.h"
#include "exec/calibrate/memory_benchmark.h"
#include "exec/device/machine.h"
#include "exec/launch/gpu_rank.h"
#include "exec/launch/rank_processes.h"
#include "exec/profiler/profile_workload.h"
#include "model/base/error.h"
#include "model/base/text.h"
#include "tools/common/count_option.h"
#include "tools/common/file.h"
#include "tools/common/load.h"
#include "tools/dc_run/cluster_yaml.h"
#include "tools/dc_run/commands.h"
#include "tools/dc_run/contention_yaml.h"
#include "tools/dc_run/executable_form.h"
#include "tools/dc_run/triton_yaml.h"
#include "tools/dc_run/versions.h"

namespace dcsim {
namespace {

struct CalibrateOptions {
  int gpus = 1;
  std::string gpu;  // GPU file, as the cluster file names it
  std::string out = "-";
  std::string contention;              // file for what streams cost each other; empty: not measured
  std::string kernels;                 // file for the rates of Triton kernels; empty: not measured
  std::vector<std::string> workloads;  // folders, whose kernels they are
};

/// What the rates of Triton kernels are measured with, read before anything is measured.
struct KernelWorkloads {
  GpuSpec gpu;
  std::vector<std::vector<ExecutableForm>> forms;  // by workload: for ZeRO-3, for ZeRO-1 and 2
};

std::string CommandOf(const CalibrateOptions& options) {
  std::string command = "dc-run calibrate --gpus " + std::to_string(options.gpus) + " --gpu " +
                        options.gpu + " --out " + options.out +
                        (options.contention.empty() ? "" : " --contention " + options.contention) +
                        (options.kernels.empty() ? "" : " --kernels " + options.kernels);
  for (const std::string& workload : options.workloads) {
    command += " --workload " + workload;
  }
  return command;
}

void Report(const std::string& line) {
  std::cerr << "calibrate: " << line << "\n";
}

KernelWorkloads LoadKernelWorkloads(const CalibrateOptions& options) {
  KernelWorkloads kernels;
  kernels.gpu = LoadGpu(options.gpu, std::filesystem::path(options.out).parent_path(), "--gpu");
  for (const std::string& folder : options.workloads) {
    std::vector<ExecutableForm>& forms = kernels.forms.emplace_back();
    for (const int stage : {3, 1}) {
      forms.push_back(TakeExecutable({LoadWorkload(folder), {}}, "inductor", stage, "cuda"));
      if (forms.back().workload.workload.graph.kernels.empty()) {
        throw Error("--workload " + folder + ": a compiled form of it has no Triton kernels");
      }
    }
  }
  return kernels;
}

/// Throws Error where the GPU file is of another GPU than this one.
void CheckGpu(const GpuSpec& gpu) {
  if (const std::string here = exec::GpuName(); here != gpu.name) {
    throw Error("--gpu: the file is of " + gpu.name + ", but this GPU is " + here);
  }
}

/// Profiles the workloads on this GPU, one after the other.
exec::LaunchFit MeasureKernels(const KernelWorkloads& kernels) {
  constexpr int kTrainedSteps = 2;  // weights hardly change what Triton kernels take
  constexpr int kSteps = 5;
  std::vector<exec::WorkloadLaunches> launches;
  for (const std::vector<ExecutableForm>& forms : kernels.forms) {
    exec::WorkloadLaunches& own = launches.emplace_back();
    Report("kernels of " + forms.front().workload.workload.graph.name);
    for (const ExecutableForm& form : forms) {
      const Graph& graph = form.workload.workload.graph;
      exec::ProfileSettings settings;
      settings.trained_steps = kTrainedSteps;
      settings.steps = kSteps;
      settings.binaries = form.found();
      exec::AddLaunches(
          exec::LaunchesOf(graph, exec::ProfileWorkload(graph, settings), kernels.gpu), own);
    }
  }
  return exec::FitLaunches(launches, kernels.gpu);
}

std::vector<std::string> NamesOf(const KernelWorkloads& kernels) {
  std::vector<std::string> names;
  for (const std::vector<ExecutableForm>& forms : kernels.forms) {
    names.push_back(forms.front().workload.workload.graph.name);
  }
  return names;
}

/// What all ranks measure together; the rest is rank 0's.
CalibrationResult Measure(const CalibrateOptions& options,
                          const exec::RankIdentity& identity,
                          exec::Rendezvous& rendezvous) {
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
  return result;
}

/// `kernels`: of rank 0, where they are measured; else null.
int CalibrateRank(const CalibrateOptions& options,
                  const KernelWorkloads* kernels,
                  const exec::RankIdentity& identity,
                  const exec::RendezvousAddress& address) {
  exec::SelectGpu(identity);
  if (identity.rank == 0 && kernels != nullptr) {
    CheckGpu(kernels->gpu);
  }
  exec::Rendezvous rendezvous(address, identity);
  CalibrationResult result = Measure(options, identity, rendezvous);
  if (identity.rank == 0) {
    result.machine = exec::MachineReport();
    result.versions = Versions();
    result.date = exec::Today();
    const std::string command = CommandOf(options);
    WriteFile(options.out, PrintClusterYaml(result, options.gpus, options.gpu, command));
    if (!result.contention.empty()) {
      WriteFile(options.contention, PrintContentionYaml(result, options.gpus, command));
    }
    if (kernels != nullptr) {
      result.launches = MeasureKernels(*kernels);
      WriteFile(options.kernels, PrintTritonYaml(result, NamesOf(*kernels),
                                                 kernels->gpu.triton != nullptr, command));
    }
  }
  rendezvous.Finish();
  return 0;
}

/// Before anything is measured.
void CheckOptions(const CalibrateOptions& options) {
  if (options.gpus < 1) {
    throw Error("--gpus " + std::to_string(options.gpus) + ": expected 1 or more");
  }
  if (options.gpus < 2 && !options.contention.empty()) {
    throw Error("--contention: expected --gpus 2 or more, got " + std::to_string(options.gpus));
  }
  if (!options.kernels.empty() && options.workloads.empty()) {
    throw Error("--kernels: needs one --workload or more, whose kernels to measure");
  }
  if (options.kernels.empty() && !options.workloads.empty()) {
    throw Error("--workload: is for --kernels F, which takes the rates of its kernels");
  }
  CheckOutputs({{"--out", options.out},
                {"--contention", options.contention},
                {"--kernels", options.kernels}});
}

ExitCode RunCalibrate(const CalibrateOptions& options) {
  CheckOptions(options);
  const auto identity = exec::FindLauncherIdentity();
  std::optional<KernelWorkloads> kernels;
  if (!options.kernels.empty() && (!identity || identity->rank == 0)) {
    kernels = LoadKernelWorkloads(options);
  }
  const auto rank = [&options, &kernels](const exec::RankIdentity& of,
                                         const exec::RendezvousAddress& address) {
    return CalibrateRank(options, kernels ? &*kernels : nullptr, of, address);
  };
  if (identity) {
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
      "  dc-run calibrate --gpus 4 --gpu ../gpus/h200.yaml --out configs/clusters/h200-4.yaml\n"
      "  dc-run calibrate --gpu ../gpus/h200.yaml --out new.yaml --kernels triton.yaml "
      "--workload traces/llama-3.2-1b-cudnn --workload traces/bert-large",
      [](CLI::App& app) -> std::function<ExitCode()> {
        const auto options = std::make_shared<CalibrateOptions>();
        AddCount(app, "--gpus", options->gpus, {1, 1'000'000}, "GPUs of this machine to use");
        app.add_option("--gpu", options->gpu, "GPU file, as a path from the cluster file's folder")
            ->required();
        app.add_option("--contention", options->contention,
                       "file for the contention of a GPU file, measured on two or more GPUs; "
                       "left out, it is not measured");
        app.add_option("--kernels", options->kernels,
                       "file for triton of a GPU file, fitted to the kernels of workloads; "
                       "left out, they are not measured");
        app.add_option("--workload", options->workloads,
                       "folder of a recorded workload, whose Triton kernels --kernels measures");
        app.add_option("--out", options->out, "cluster file to write; - is stdout");
        return [options] { return RunCalibrate(*options); };
      }};
}

}  // namespace dcsim
