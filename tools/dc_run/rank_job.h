#pragma once

#include <string>
#include <vector>

#include "exec/measure/measure_steps.h"
#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/ir/result.h"
#include "model/ir/schedule.h"
#include "model/ir/timeline.h"
#include "tools/common/load.h"

namespace dcsim {

/// A schedule to execute, lowered for all ranks, and the graph that it is of.
struct ExecutionCase {
  const ProfiledWorkload* workload;  // the workload's own graph, or a compiled form
  std::string plan_file;
  Plan plan;
  Schedule schedule;
  const exec::KernelBinaries* binaries = nullptr;  // of a compiled graph on GPUs

  const Graph& graph() const { return workload->workload.graph; }
};

/// Where and how long schedules are executed.
struct ExecutionSettings {
  int gpus = 1;
  bool on_cpu = false;      // ranks as threads, CPU tensors
  bool communicate = true;  // false: collectives are left out
  exec::SideStreams side_streams = exec::SideStreams::kQuiet;
  std::uint64_t seed = 0;
  exec::MeasureSettings measure;
  std::string command;  // for the results
  int limit = 0;        // seconds that one case on GPUs may take; 0: any
};

/// What executing one case gave, and the timelines of all ranks or none, in their order. Time 0 is
/// that of rank 0's.
struct ExecutionResult {
  Result result;
  std::vector<Timeline> timelines;
};

/// Executes cases one after the other and hands each result, as soon as it is there, to `done` (on
/// rank 0's process). Ranks are this program's own processes (the same for all cases, or new ones
/// for each where kernels are recorded, and for those behind one that ran out of memory) or
/// threads, or those of a launcher that started it, where an out-of-memory ends all. A case
/// whose ranks have not ended within the limit is a deadlock, where it has ranks of its own.
/// Returns false when a case ran out of memory or into its limit.
///
/// Throws SystemError for missing GPUs and failing ranks.
bool ExecuteCases(const std::vector<ExecutionCase>& cases,
                  const ExecutionSettings& settings,
                  const std::function<void(std::size_t, const ExecutionResult&)>& done);

}  // namespace dcsim
