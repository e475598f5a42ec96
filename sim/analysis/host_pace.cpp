#include "sim/analysis/host_pace.h"

#include <algorithm>
#include <optional>
#include <span>

#include "model/cost/work_cost.h"

namespace dcsim {
namespace {

/// Of each task, the stretch of `ops` computing tasks that it belongs to; others belong to that of
/// the computing task before them.
std::vector<std::size_t> StretchesOf(const Schedule& schedule, std::int64_t ops) {
  std::vector<std::size_t> stretches;
  stretches.reserve(schedule.task_count());
  std::size_t begun = 0;
  for (const Task& task : schedule.tasks()) {
    begun += task.kind == TaskKind::kCompute ? 1 : 0;
    stretches.push_back(begun == 0 ? 0 : (begun - 1) / static_cast<std::size_t>(ops));
  }
  return stretches;
}

/// What the computing tasks of each of so many stretches are priced at.
std::vector<Duration> PricesOf(const Schedule& schedule,
                               std::span<const WorkCost> costs,
                               std::span<const std::size_t> stretches) {
  std::vector<Duration> prices(stretches.empty() ? 0 : stretches.back() + 1);
  std::size_t at = 0;
  for (const Task& task : schedule.tasks()) {
    const std::size_t stretch = stretches[at++];
    prices[stretch] += task.kind == TaskKind::kCompute ? costs[task.work.index()].host : Duration();
  }
  return prices;
}

std::optional<HostPace> PaceOf(const HostReading& host,
                               const Schedule& schedule,
                               std::span<const WorkCost> costs) {
  if (host.ops <= 0) {
    return std::nullopt;
  }
  const auto stretches = StretchesOf(schedule, host.ops);
  const auto prices = PricesOf(schedule, costs, stretches);
  std::vector<double> slowdowns(prices.size(), 0);
  Duration read;
  Duration priced;
  for (std::size_t i = 0; i < std::min(prices.size(), host.times.size()); ++i) {
    if (host.times[i] && prices[i] > Duration()) {
      slowdowns[i] = host.times[i]->seconds() / prices[i].seconds();
      read += *host.times[i];
      priced += prices[i];
    }
  }
  if (priced == Duration()) {
    return std::nullopt;
  }
  HostPace pace;
  pace.slowdown = read.seconds() / priced.seconds();
  std::ranges::replace(slowdowns, 0, pace.slowdown);
  for (const std::size_t stretch : stretches) {
    pace.tasks.push_back(slowdowns[stretch]);
  }
  return pace;
}

}  // namespace

std::vector<HostPace> HostPaces(const std::vector<RankReadings>& ranks,
                                const Schedule& schedule,
                                const PredictionInputs& inputs) {
  const auto costs = EstimateWorks(schedule, inputs.graph, inputs.profile, inputs.cluster);
  std::vector<HostPace> paces;
  for (const RankReadings& rank : ranks) {
    if (auto pace = PaceOf(rank.host, schedule, costs)) {
      paces.push_back(*std::move(pace));
    }
  }
  return paces;
}

}  // namespace dcsim
