#include "tools/dc_run/rank_job.h"

#include <iostream>
#include <memory>
#include <thread>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>

#include "exec/communicator/host_communicator.h"
#include "exec/communicator/nccl_communicator.h"
#include "exec/device/machine.h"
#include "exec/executor/step_executor.h"
#include "exec/launch/rank_processes.h"
#include "exec/launch/rendezvous.h"
#include "model/base/error.h"
#include "model/ir/task_label.h"
#include "tools/dc_run/measured_result.h"

namespace dcsim {
namespace {

using exec::Communicator;
using exec::RankIdentity;
using exec::RankMeasurement;
using exec::Rendezvous;
using Done = std::function<void(std::size_t, const ExecutionResult&)>;

/// What every rank of a job works on.
struct Job {
  const Graph& graph;
  const std::vector<ExecutionCase>& cases;
  const ExecutionSettings& settings;
  const Done& done;
};

exec::MeasureSettings RankSettings(const Job& job,
                                   const RankIdentity& identity,
                                   const ExecutionCase& execution) {
  exec::MeasureSettings settings = job.settings.measure;
  settings.report = [identity, name = execution.plan_file](const std::string& line) {
    if (identity.rank == 0) {
      std::cerr << name << ": " << line << "\n";
    }
  };
  return settings;
}

/// Executes one case on one rank. Out of memory becomes RankOutOfMemory.
RankMeasurement ExecuteOne(const Job& job,
                           const ExecutionCase& execution,
                           const RankIdentity& identity,
                           c10::Device device,
                           const std::vector<Communicator*>& communicators) {
  std::unique_ptr<exec::StepExecutor> executor;
  const std::string who = "rank " + std::to_string(identity.rank);
  try {
    executor = std::make_unique<exec::StepExecutor>(exec::RankSetup{
        job.graph, execution.schedule, device, communicators, job.settings.seed, {}});
    return exec::MeasureSteps(*executor, execution.schedule, device,
                              RankSettings(job, identity, execution));
  } catch (const c10::OutOfMemoryError& error) {
    const std::string what = error.what();
    const std::string where =
        executor == nullptr ? "allocation of weights and optimizer states"
                            : TaskLabel(execution.schedule, job.graph, executor->current_task());
    throw exec::RankOutOfMemory(who + ", " + where + ": " + what.substr(0, what.find('\n')));
  }
}

ExecutionResult Merge(const Job& job,
                      std::size_t index,
                      std::vector<RankMeasurement> ranks,
                      std::optional<Timeline> timeline) {
  ExecutionResult merged{MeasuredResult(job.graph, job.cases[index], ranks), std::move(timeline)};
  MeasurementNotes& notes = *merged.result.measurement;
  notes.date = exec::Today();
  notes.command = job.settings.command;
  if (!job.settings.on_cpu) {
    notes.versions = exec::VersionReport();
    notes.machine = exec::MachineReport();
  }
  return merged;
}

// --- GPUs: a process a rank
// -----------------------------------------------------------------------

std::vector<std::unique_ptr<Communicator>> JoinCommunicators(Rendezvous& rendezvous,
                                                             const RankIdentity& identity) {
  constexpr int kCommunicators = 2;
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int i = 0; i < kCommunicators; ++i) {
    const std::string key = "nccl/" + std::to_string(i);
    if (identity.rank == 0) {
      const ncclUniqueId id = exec::NcclCommunicator::MakeId();
      rendezvous.Set(key, std::string(id.internal, sizeof(id.internal)));
    }
    const std::string shared = rendezvous.Get(key);
    ncclUniqueId id;
    std::copy(shared.begin(), shared.end(), id.internal);
    communicators.push_back(
        std::make_unique<exec::NcclCommunicator>(id, identity.rank, identity.size));
  }
  return communicators;
}

int RunGpuRank(const Job& job,
               const RankIdentity& identity,
               const exec::RendezvousAddress& address) {
  if (exec::GpuCount() <= identity.local_rank) {
    throw SystemError("rank " + std::to_string(identity.rank) + " needs GPU " +
                      std::to_string(identity.local_rank) + ", this machine has " +
                      std::to_string(exec::GpuCount()));
  }
  const auto local = static_cast<c10::DeviceIndex>(identity.local_rank);
  c10::cuda::set_device(local);
  const c10::Device device(c10::kCUDA, local);
  Rendezvous rendezvous(address, identity);
  const auto communicators = JoinCommunicators(rendezvous, identity);
  std::vector<Communicator*> views;
  for (const auto& communicator : communicators) {
    views.push_back(communicator.get());
  }
  for (std::size_t i = 0; i < job.cases.size(); ++i) {
    const RankMeasurement own = ExecuteOne(job, job.cases[i], identity, device, views);
    const auto texts =
        rendezvous.Exchange("result/" + std::to_string(i), exec::PrintRankMeasurement(own));
    if (identity.rank == 0) {
      std::vector<RankMeasurement> ranks;
      for (const std::string& text : texts) {
        ranks.push_back(exec::ParseRankMeasurement(text));
      }
      job.done(i, Merge(job, i, std::move(ranks), own.timeline));
    }
    c10::cuda::CUDACachingAllocator::emptyCache();
  }
  rendezvous.Exchange("end", "");  // rank 0 serves the store until all have read what they need
  return 0;
}

// --- CPU: a thread a rank
// -------------------------------------------------------------------------

void ExecuteOnThreads(const Job& job, std::size_t index) {
  const int size = job.settings.gpus;
  const auto group = std::make_shared<exec::HostGroup>(size);
  std::vector<RankMeasurement> ranks(static_cast<std::size_t>(size));
  std::vector<std::string> failures(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<std::size_t>(rank);
      try {
        exec::HostCommunicator communicator(group, rank);
        ranks[at] = ExecuteOne(job, job.cases[index], {rank, rank, size}, c10::Device(c10::kCPU),
                               {&communicator});
      } catch (const std::exception& error) {
        failures[at] = error.what();
        group->Abort("rank " + std::to_string(rank) + ": " + error.what());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::string& failure : failures) {
    if (!failure.empty()) {
      throw SystemError(failure);
    }
  }
  job.done(index, Merge(job, index, std::move(ranks), std::nullopt));
}

ExecutionResult OutOfMemoryResult(const Job& job, const std::string& what) {
  ExecutionResult result;
  result.result.origin = Origin::kMeasured;
  result.result.outcome = "out_of_memory";
  result.result.stop = StopReport{what, Bytes(0), 0};
  result.result.workload = job.graph.name;
  result.result.graph_hash = job.graph.hash;
  result.result.gpus = job.settings.gpus;
  return result;
}

}  // namespace

bool ExecuteCases(const Graph& graph,
                  const std::vector<ExecutionCase>& cases,
                  const ExecutionSettings& settings,
                  const std::function<void(std::size_t, const ExecutionResult&)>& done) {
  const Job job{graph, cases, settings, done};
  if (settings.on_cpu) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      ExecuteOnThreads(job, i);
    }
    return true;
  }
  const auto main = [&job](const RankIdentity& identity, const exec::RendezvousAddress& address) {
    return RunGpuRank(job, identity, address);
  };
  if (const auto identity = exec::FindLauncherIdentity()) {
    main(*identity, exec::LauncherRendezvous(*identity));
    return true;
  }
  try {
    exec::RunRankProcesses(settings.gpus, main);
  } catch (const exec::RankOutOfMemory& error) {
    done(0, OutOfMemoryResult(job, error.what()));
    return false;
  }
  return true;
}

}  // namespace dcsim
