#pragma once

#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/predict.h"
#include "tools/common/load.h"
#include "tools/common/recorded_sizes.h"

namespace CLI {
class App;
}

namespace dcsim {

/// The options of every subcommand that is about one schedule of one workload.
struct StepOptions {
  std::string workload;
  AskedSizes sizes;
  std::string cluster;
  std::string plan;
  int gpus = 0;  // 0: all of the cluster
  OpTimes times = OpTimes::kProfiled;
  BatchSizes batches = BatchSizes::kFile;
  std::vector<std::string> overrides;
  std::vector<std::string> cluster_overrides;
};

/// Declares --cluster-set, for what-ifs.
void DeclareClusterOverrides(CLI::App& app, std::vector<std::string>& overrides);

/// LoadCluster with what --cluster-set asks for.
Cluster LoadChangedCluster(const std::string& path, const std::vector<std::string>& overrides);

/// Declares --no-profile.
void DeclareOpTimes(CLI::App& app, OpTimes& times);

/// Declares WORKLOAD, --batch, --seq, --cluster, --cluster-set, --gpus, --set and --no-profile.
void DeclareStepInputs(CLI::App& app, StepOptions& options);

/// Declares those and --plan.
void DeclareStepOptions(CLI::App& app, StepOptions& options);

/// What those options name, loaded.
struct LoadedStep {
  Workload workload;
  Cluster cluster;
  std::optional<Profile> profile;
  Plan plan;

  PredictionInputs inputs() const {
    return {workload.graph, profile ? &*profile : nullptr, cluster};
  }
};

/// Says where a plan's memory is a lower bound: autograd saves all that its formulas ask for, and a
/// graph of the min-cut partitioner recomputes some of it, which makes an eager step look smaller.
void NoteRecomputation(const std::string& workload,
                       const Graph& graph,
                       const Plan& plan,
                       std::ostream& notes = std::cerr);

/// Ranks for "--gpus", of which 0 means all of the cluster. Throws Error when it has fewer.
int RanksFor(int gpus, const Cluster& cluster);

/// `notes` takes what is said of the inputs, a line each.
LoadedStep LoadStep(const StepOptions& options, std::ostream& notes = std::cerr);
/// The whole schedule of its plan, whose rules hold.
Schedule LowerStep(const LoadedStep& step);

}  // namespace dcsim
