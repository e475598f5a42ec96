#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/common/load.h"
#include "tools/dc_run/rank_job.h"

namespace CLI {
class App;
}

namespace dcsim {

/// Plans to execute on one workload, and how.
struct PlansToRun {
  std::vector<std::string> plans;      // files
  std::vector<std::string> overrides;  // "key=value", of every plan
  int gpus = 1;
  std::string device = "cuda";  // or cpu: ranks as threads
  int warmup = 5;
  int steps = 20;
  int limit = 1800;  // seconds for one plan on GPUs, with its start; 0: any
  bool trace = true;
  bool communicate = true;  // false: collectives are left out, for profiles of compute alone
  std::string side_streams = "quiet";  // or any
  bool segments = false;               // record where the driver puts the allocator's segments
  std::string cluster;                 // file of what is known of the machine; empty: nothing
  std::string out;                     // folder for results and timelines; empty: none are written
};

/// Declares --set, --gpus, --device, --warmup, --steps, --limit, --communication, --side-streams,
/// --segments, --cluster and --out.
void DeclarePlansToRun(CLI::App& app, PlansToRun& what);

/// " --side-streams any --segments", of these what was asked for, for the command in results.
std::string MeasuringText(const PlansToRun& what);

/// "plans/zero3.yaml" -> "zero3".
std::string PlanName(const std::string& file);

/// Executes them and hands each case with its result to `done`, on rank 0's process, once the
/// result's files are written to `out`. Returns false when a case did not complete.
///
///   cluster   what policies may know of the machine, with the workload's profile; nullptr: nothing
///
/// Throws Error for bad numbers, devices, plans, and a folder `out` that is not there; SystemError
/// as ExecuteCases.
bool RunPlans(const ProfiledWorkload& loaded,
              const Cluster* cluster,
              const PlansToRun& what,
              const std::string& command,
              const std::function<void(const ExecutionCase&, const ExecutionResult&)>& done);

}  // namespace dcsim
