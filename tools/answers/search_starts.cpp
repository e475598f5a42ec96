#include "tools/answers/search_starts.h"

#include <algorithm>
#include <set>

#include "model/base/error.h"
#include "model/ir/plan_options.h"
#include "tools/common/deepspeed_launches.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

/// The baseline, or DeepCompile's plan of each stage that the space has. Eager DeepSpeed's runs no
/// compiled graph, so it is compared with, but no schedule to start from; nor are FSDP2's groups.
std::vector<Plan> OwnStarts(const LoadedSearch& loaded) {
  if (loaded.baseline && loaded.baseline->options.sharding == Sharding::kZero) {
    return {*loaded.baseline};
  }
  std::set<int> stages;
  for (const ScheduleOptions& each : loaded.space.options) {
    stages.insert(each.stage);
  }
  std::vector<Plan> plans;
  plans.reserve(stages.size());
  for (const int stage : stages) {
    plans.push_back(DeepSpeedPlan(loaded, NewestDeepCompile(), stage));
  }
  return plans;
}

}  // namespace

AskedForm SearchForm(const std::string& backend,
                     const std::vector<std::string>& plans,
                     const SearchSpace& space,
                     const DeepSpeedJob& job) {
  const bool gathers = std::any_of(space.options.begin(), space.options.end(),
                                   [](const auto& each) { return each.stage == 3; });
  AskedForm form{std::nullopt, gathers ? 3 : 1};
  if (!backend.empty()) {
    form.backend = BackendNamed(backend);
    return form;
  }
  for (const std::string& plan : plans) {
    if (!plan.empty() && !form.backend) {
      form.backend = FindForm(plan, {}, job).backend;
    }
  }
  return form;
}

std::vector<Candidate> SearchStarts(const LoadedSearch& loaded,
                                    const std::vector<std::string>& files,
                                    bool for_deepspeed,
                                    SearchProblem& problem,
                                    std::ostream& notes) {
  const ScheduleOptions& base = loaded.space.options.front();
  const Graph& graph = loaded.workload.graph;
  std::vector<Plan> plans = OwnStarts(loaded);
  if (for_deepspeed) {
    std::erase_if(plans,
                  [&](const Plan& plan) { return !FindDeepSpeedFaults(plan, graph).empty(); });
  }
  for (const std::string& path : files) {
    plans.push_back(
        LoadPlan(path, {}, loaded.inputs(), problem.ranks, {BatchSizes::kFile, &notes}));
    if (for_deepspeed) {
      RequireDeepSpeedPlan(plans.back(), graph);
    }
    const ScheduleOptions& own = plans.back().options;
    if (own.sharding == Sharding::kFsdp2) {
      throw Error(path + ": fsdp's groups are no schedule that a search starts from");
    }
    if (own.gradient_accumulation_steps != base.gradient_accumulation_steps ||
        own.gradient_clipping != base.gradient_clipping) {
      throw Error(path + ": trains differently from the " +
                  (loaded.baseline ? "baseline" : "space") + ": another " +
                  (own.gradient_clipping != base.gradient_clipping
                       ? "gradient_clipping"
                       : "gradient_accumulation_steps"));
    }
  }
  std::vector<Candidate> candidates;
  for (Plan& each : plans) {
    for (const GraphPlan& decisions : each.graphs) {
      if (!decisions.state_moves.empty()) {
        throw Error("a search keeps optimizer states on the GPU, but " + each.policy +
                    "'s plan to start from offloads some");
      }
    }
    const Plan plan = WithoutEvents(std::move(each));
    const std::uint32_t order = AddOrder(problem, plan);
    candidates.push_back(MakeCandidate(problem, plan, order));
  }
  return candidates;
}

}  // namespace dcsim
