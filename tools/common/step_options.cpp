#include "tools/common/step_options.h"

#include <CLI/CLI.hpp>

#include "model/base/error.h"
#include "model/ir/document.h"
#include "model/passes/verify.h"
#include "tools/common/compiled_form.h"
#include "tools/common/count_option.h"

namespace dcsim {
namespace {

constexpr const char* kClusterSet = "--cluster-set";

/// What a cluster of so many GPUs is asked for with.
std::string MoreNodes(const Cluster& cluster, int ranks) {
  std::string text = "; more nodes: --cluster-set nodes=" + std::to_string(cluster.NodesOf(ranks));
  if (!cluster.inter_node) {
    text +=
        " --cluster-set 'inter_node={bus_bandwidth: 50 GB/s, latency: 20 us, hop_latency: 2 us}' "
        "with the numbers of your network (docs/reference/clusters.md)";
  }
  return text;
}

/// Says where the host has more to do than what is priced.
void NoteHostPython(const std::string& workload, const Plan& plan, std::ostream& notes) {
  if (plan.policy == "fsdp") {
    notes << workload
          << ": the Python of FSDP2's hooks is not priced: a slow host makes steps longer than "
             "this\n";
  }
}

}  // namespace

void NoteRecomputation(const std::string& workload,
                       const Graph& graph,
                       const Plan& plan,
                       std::ostream& notes) {
  const Json recorded = Json::parse(graph.notes.options, nullptr, /*allow_exceptions=*/false);
  const bool eager = plan.policy == "deepspeed-eager" || plan.policy == "fsdp";
  if (eager && !graph.compiled && recorded.is_object() &&
      recorded.value("partitioner", "") == "mincut") {
    notes
        << workload << ": " << plan.policy
        << "'s memory is a lower bound: recorded with --partitioner mincut, which recomputes what "
           "eager autograd saves; --partitioner default records it\n";
  }
}

int RanksFor(int gpus, const Cluster& cluster) {
  const int ranks = gpus == 0 ? cluster.gpus() : gpus;
  if (ranks < 1 || ranks > cluster.gpus()) {
    throw Error("--gpus " + std::to_string(gpus) + ": expected from 1 to " +
                std::to_string(cluster.gpus()) + ", the GPUs of " + cluster.name +
                (ranks > 0 ? MoreNodes(cluster, ranks) : ""));
  }
  return ranks;
}

void DeclareClusterOverrides(CLI::App& app, std::vector<std::string>& overrides) {
  app.add_option(
         kClusterSet, overrides,
         "key=value changes a field of the cluster file for this run, gpu.key one of its GPU "
         "file; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
}

Cluster LoadChangedCluster(const std::string& path, const std::vector<std::string>& overrides) {
  return LoadCluster(path, ParseOverrides(overrides, kClusterSet));
}

void DeclareOpTimes(CLI::App& app, OpTimes& times) {
  app.add_flag_callback(
      "--no-profile", [&times] { times = OpTimes::kRoofline; },
      "price ops by the roofline, as if nobody had profiled the workload");
}

void DeclareStepInputs(CLI::App& app, StepOptions& options) {
  app.add_option("WORKLOAD", options.workload, "folder of a recorded workload (traces/qwen3-8b)")
      ->required();
  DeclareSizes(app, options.sizes);
  app.add_option("--cluster", options.cluster, "cluster file (configs/clusters/h200-8.yaml)")
      ->required();
  DeclareClusterOverrides(app, options.cluster_overrides);
  AddCount(app, "--gpus", options.gpus, {},
           "data-parallel ranks; all GPUs of the cluster if left out");
  app.add_option("--set", options.overrides,
                 "key=value changes a field of the plan; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  DeclareOpTimes(app, options.times);
}

void DeclareStepOptions(CLI::App& app, StepOptions& options) {
  DeclareStepInputs(app, options);
  app.add_option("--plan", options.plan, "plan file (configs/plans/zero3.yaml)")->required();
}

LoadedStep LoadStep(const StepOptions& options, std::ostream& notes) {
  const std::vector<Override> overrides = ParseOverrides(options.overrides, "--set");
  Workload recorded = LoadWorkload(options.workload, options.sizes, notes);
  Cluster cluster = LoadChangedCluster(options.cluster, options.cluster_overrides);
  const int ranks = RanksFor(options.gpus, cluster);
  const AskedForm form =
      FindForm(options.plan, overrides, DeepSpeedJobOf(recorded.graph, ranks, options.batches));
  ProfiledWorkload taken =
      TakeForm(std::move(recorded), cluster.gpu.name, options.times, form, notes);
  Workload& workload = taken.workload;
  std::optional<Profile>& profile = taken.profile;
  const PredictionInputs inputs{workload.graph, profile ? &*profile : nullptr, cluster};
  Plan plan = LoadPlan(options.plan, overrides, inputs, ranks, {options.batches, &notes});
  NoteRecomputation(options.workload, workload.graph, plan, notes);
  NoteHostPython(options.workload, plan, notes);
  return {std::move(workload), std::move(cluster), std::move(profile), std::move(plan)};
}

Schedule LowerStep(const LoadedStep& step) {
  Schedule schedule = LowerFor(step.plan, step.inputs());
  RequireCorrect(schedule, step.workload.graph);
  return schedule;
}

}  // namespace dcsim
