#include "tools/dc_run/rank_job.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <iostream>
#include <list>
#include <memory>
#include <system_error>
#include <thread>

#include "exec/communicator/host_communicator.h"
#include "exec/communicator/silent_communicator.h"
#include "exec/device/machine.h"
#include "exec/launch/gpu_rank.h"
#include "exec/launch/rank_processes.h"
#include "exec/measure/measure_rank.h"
#include "exec/measure/measurement_text.h"
#include "model/base/error.h"
#include "model/ir/plan_reader.h"
#include "tools/dc_run/measured_result.h"
#include "tools/dc_run/versions.h"

namespace dcsim {
namespace {

using exec::Communicator;
using exec::RankIdentity;
using exec::RankMeasurement;
using exec::Rendezvous;
using Done = std::function<void(std::size_t, const ExecutionResult&)>;

/// What every rank of a job works on.
struct Job {
  const std::vector<ExecutionCase>& cases;
  const ExecutionSettings& settings;
  const Done& done;
  std::size_t first = 0;  // of the cases, and behind the last
  std::size_t end = 0;
};

exec::MeasureSettings RankSettings(const Job& job, int rank, const ExecutionCase& execution) {
  exec::MeasureSettings settings = job.settings.measure;
  settings.report = [rank, name = execution.plan_file](const std::string& line) {
    if (rank == 0) {
      std::cerr << name << ": " << line << "\n";
    }
  };
  return settings;
}

/// When, and by what.
void AddOrigin(const Job& job, MeasurementNotes& notes) {
  notes.date = exec::Today();
  notes.command = job.settings.command;
}

/// And with what and where.
void AddMachine(const Job& job, MeasurementNotes& notes) {
  if (!job.settings.on_cpu) {
    notes.versions = Versions();
    notes.machine = exec::MachineReport();
  }
}

/// The ranks' timelines, their spans counted from the start of rank 0's.
std::vector<Timeline> JoinTimelines(std::vector<RankMeasurement>& ranks) {
  std::vector<Timeline> timelines;
  for (RankMeasurement& rank : ranks) {
    if (!rank.timeline) {
      continue;
    }
    const auto late = Duration::FromNs(
        static_cast<std::int64_t>(rank.timeline_start_ns - ranks.front().timeline_start_ns));
    Timeline& timeline = timelines.emplace_back(*std::move(rank.timeline));
    for (Span& span : timeline.spans) {
      span.start = span.start + late;
      span.end = span.end + late;
    }
  }
  return timelines;
}

ExecutionResult Merge(const Job& job, std::size_t index, std::vector<RankMeasurement> ranks) {
  ExecutionResult merged{MeasuredResult(job.cases[index], ranks), JoinTimelines(ranks)};
  AddOrigin(job, *merged.result.measurement);
  AddMachine(job, *merged.result.measurement);
  return merged;
}

// --- GPUs: a process a rank

/// An out-of-memory crosses processes as text alone: with the case, and with what only a rank may
/// ask, since a process that has touched CUDA can start no more ranks.
RankMeasurement MeasureCase(std::size_t index, const std::function<RankMeasurement()>& measure) {
  try {
    return measure();
  } catch (const exec::RankOutOfMemory& error) {
    throw exec::RankOutOfMemory(Json{
        {"case", index},
        {"stop", error.what()},
        {"versions", Versions()},
        {"machine",
         exec::MachineReport()}}.dump());
  }
}

int RunGpuRank(const Job& job,
               const RankIdentity& identity,
               const exec::RendezvousAddress& address) {
  const auto device = exec::SelectGpu(identity);
  Rendezvous rendezvous(address, identity);
  constexpr int kCommunicators = 2;
  const auto communicators = exec::JoinCommunicators(rendezvous, identity, kCommunicators);
  std::list<exec::SilentCommunicator> silent;
  std::vector<Communicator*> views;
  for (const auto& communicator : communicators) {
    silent.emplace_back(*communicator);
    views.push_back(job.settings.communicate ? communicator.get() : &silent.back());
  }
  for (std::size_t i = job.first; i < job.end; ++i) {
    const ExecutionCase& execution = job.cases[i];
    int asked = 0;
    exec::MeasureSettings settings = RankSettings(job, identity.rank, execution);
    settings.on_any_rank = [&](bool own) {
      const std::string key = "any/" + std::to_string(i) + "/" + std::to_string(asked++);
      const auto all = rendezvous.Exchange(key, own ? "yes" : "no");
      return std::ranges::find(all, "yes") != all.end();
    };
    const RankMeasurement own = MeasureCase(i, [&] {
      return exec::MeasureRank({execution.graph(),
                                execution.schedule,
                                device,
                                views,
                                job.settings.seed,
                                {},
                                job.settings.side_streams,
                                execution.binaries},
                               identity.rank, settings);
    });
    const auto texts =
        rendezvous.Exchange("result/" + std::to_string(i), exec::PrintRankMeasurement(own));
    if (identity.rank == 0) {
      std::vector<RankMeasurement> ranks;
      for (const std::string& text : texts) {
        ranks.push_back(exec::ParseRankMeasurement(text));
      }
      job.done(i, Merge(job, i, std::move(ranks)));
    }
  }
  rendezvous.Finish();
  return 0;
}

// --- CPU: a thread a rank

/// One rank's part of a case; a failure ends the other ranks' too. Returns what failed, or "".
std::string ExecuteRank(const Job& job,
                        std::size_t index,
                        const std::shared_ptr<exec::HostGroup>& group,
                        int rank,
                        RankMeasurement& measured) {
  const ExecutionCase& execution = job.cases[index];
  try {
    exec::HostCommunicator communicator(group, rank);
    exec::SilentCommunicator silent(communicator);
    Communicator& used =
        job.settings.communicate ? static_cast<Communicator&>(communicator) : silent;
    measured = exec::MeasureCpuRank(execution.graph(), execution.schedule, used, job.settings.seed,
                                    RankSettings(job, rank, execution));
    return "";
  } catch (const std::exception& error) {
    group->Abort("rank " + std::to_string(rank) + ": " + error.what());
    return error.what();
  }
}

void ExecuteOnThreads(const Job& job, std::size_t index) {
  const int size = job.settings.gpus;
  const auto group = std::make_shared<exec::HostGroup>(size);
  std::vector<RankMeasurement> ranks(static_cast<std::size_t>(size));
  std::vector<std::string> failures(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  std::promise<bool> all_there;  // no rank begins before all have threads: some may get none
  const std::shared_future<bool> begin = all_there.get_future().share();
  std::string missing;
  for (int rank = 0; rank < size && missing.empty(); ++rank) {
    const auto run = [&, begin, rank] {
      const auto at = static_cast<std::size_t>(rank);
      if (begin.get()) {
        failures[at] = ExecuteRank(job, index, group, rank, ranks[at]);
      }
    };
    try {
      threads.emplace_back(run);
    } catch (const std::system_error& error) {
      missing = "cannot start a thread for rank " + std::to_string(rank) + " of " +
                std::to_string(size) + ": " + error.code().message();
    }
  }
  all_there.set_value(missing.empty());
  for (std::thread& thread : threads) {
    thread.join();
  }
  failures.push_back(missing);
  for (const std::string& failure : failures) {
    if (!failure.empty()) {
      throw SystemError(failure);
    }
  }
  job.done(index, Merge(job, index, std::move(ranks)));
}

/// A case that did not complete, and why.
ExecutionResult Stopped(const Job& job,
                        std::size_t index,
                        const std::string& outcome,
                        const std::string& stop) {
  ExecutionResult result;
  result.result.origin = Origin::kMeasured;
  result.result.outcome = outcome;
  result.result.stop = StopReport{stop, Bytes(0), 0};
  const Graph& graph = job.cases[index].graph();
  result.result.workload = graph.name;
  result.result.graph_hash = graph.hash;
  result.result.plan = PrintPlan(job.cases[index].plan, graph);
  result.result.gpus = job.settings.gpus;
  AddOrigin(job, result.result.measurement.emplace());
  return result;
}

/// The result of the case that MeasureCase names, and its index.
std::size_t ReportOutOfMemory(const Job& job, const exec::RankOutOfMemory& error) {
  const Json report = Json::parse(error.what());
  const auto index = report.at("case").get<std::size_t>();
  ExecutionResult result =
      Stopped(job, index, "out_of_memory", report.at("stop").get<std::string>());
  MeasurementNotes& notes = *result.result.measurement;
  notes.versions = report.at("versions");
  notes.machine = report.at("machine");
  job.done(index, result);
  return index;
}

/// The process that a launcher started is one of the ranks; rank 0's writes the results.
bool RunLaunchedRank(const Job& job, const RankIdentity& identity) {
  if (identity.size != job.settings.gpus) {
    throw Error("--gpus " + std::to_string(job.settings.gpus) + ", but the launcher started " +
                std::to_string(identity.size) + " ranks");
  }
  try {
    RunGpuRank(job, identity, exec::LauncherRendezvous(identity));
  } catch (const exec::RankOutOfMemory& error) {
    if (identity.rank == 0) {
      ReportOutOfMemory(job, error);
    }
    return false;
  }
  return true;
}

}  // namespace

bool ExecuteCases(const std::vector<ExecutionCase>& cases,
                  const ExecutionSettings& settings,
                  const std::function<void(std::size_t, const ExecutionResult&)>& done) {
  Job job{cases, settings, done, 0, cases.size()};
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
    return RunLaunchedRank(job, *identity);
  }
  // Recorded kernels leave the launches of a process slower behind them, which steps that wait for
  // the host would show, and what libraries keep stays in segments of the kind that the first plan
  // asked for: traced cases, and those that want another allocator, have processes of their own.
  const auto goes_on = [&](std::size_t next) {
    return !settings.measure.trace && next < cases.size() &&
           cases[next].schedule.options().allocator == cases[next - 1].schedule.options().allocator;
  };
  bool completed = true;
  for (; job.first < cases.size(); job.first = job.end) {
    for (job.end = job.first + 1; goes_on(job.end); ++job.end) {
    }
    try {
      const auto together = static_cast<std::int64_t>(job.end - job.first);
      exec::RunRankProcesses(settings.gpus, main, std::chrono::seconds(settings.limit) * together);
    } catch (const exec::RankOutOfMemory& error) {
      job.end = ReportOutOfMemory(job, error) + 1;
      completed = false;
    } catch (const exec::RanksHang& error) {
      if (job.end - job.first > 1) {
        throw SystemError(error.what());  // which of them it was only the ranks know
      }
      done(job.first, Stopped(job, job.first, "deadlock", error.what()));
      completed = false;
    }
  }
  return completed;
}

}  // namespace dcsim
