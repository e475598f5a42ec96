#include "sim/analysis/host_slowdown.h"

#include <algorithm>

#include "model/cost/work_cost.h"

namespace dcsim {
namespace {

/// What the host takes for the first ops of a step.
Duration HostTime(const Schedule& schedule, std::span<const WorkCost> costs, std::int64_t ops) {
  Duration time;
  for (const Task& task : schedule.tasks()) {
    if (task.kind == TaskKind::kCompute && ops-- > 0) {
      time += costs[task.work.index()].host;
    }
  }
  return time;
}

}  // namespace

std::optional<double> HostSlowdown(const std::vector<RankReadings>& ranks,
                                   const Schedule& schedule,
                                   const PredictionInputs& inputs) {
  const auto costs = EstimateWorks(schedule, inputs.graph, inputs.profile, inputs.cluster);
  std::optional<double> slowest;
  for (const RankReadings& rank : ranks) {
    const Duration priced = HostTime(schedule, costs, rank.host.ops);
    if (priced > Duration()) {
      slowest = std::max(slowest.value_or(0), rank.host.time.seconds() / priced.seconds());
    }
  }
  return slowest;
}

}  // namespace dcsim
