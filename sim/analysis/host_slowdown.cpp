#include "sim/analysis/host_slowdown.h"

#include <algorithm>

#include "model/cost/work_cost.h"

namespace dcsim {
namespace {

/// What the host took for the stretches that were read, and what it takes for them as priced.
struct HostTimes {
  Duration read;
  Duration priced;
};

HostTimes TimesOf(const HostReading& host,
                  const Schedule& schedule,
                  std::span<const WorkCost> costs) {
  HostTimes times;
  for (const auto& time : host.times) {
    times.read += time.value_or(Duration());
  }
  std::size_t op = 0;
  for (const Task& task : schedule.tasks()) {
    if (task.kind != TaskKind::kCompute) {
      continue;
    }
    const std::size_t stretch = op++ / static_cast<std::size_t>(host.ops);
    if (stretch < host.times.size() && host.times[stretch]) {
      times.priced += costs[task.work.index()].host;
    }
  }
  return times;
}

/// A host that is ahead of the GPU in most of a step is read where it fell behind, and so too slow.
bool SetsThePace(const HostReading& host) {
  const auto read =
      std::ranges::count_if(host.times, [](const auto& time) { return time.has_value(); });
  return host.ops > 0 && 2 * static_cast<std::size_t>(read) >= host.times.size();
}

}  // namespace

std::optional<double> HostSlowdown(const std::vector<RankReadings>& ranks,
                                   const Schedule& schedule,
                                   const PredictionInputs& inputs) {
  const auto costs = EstimateWorks(schedule, inputs.graph, inputs.profile, inputs.cluster);
  std::optional<double> slowest;
  for (const RankReadings& rank : ranks) {
    if (!SetsThePace(rank.host)) {
      continue;
    }
    const HostTimes times = TimesOf(rank.host, schedule, costs);
    if (times.priced > Duration()) {
      slowest = std::max(slowest.value_or(0), times.read.seconds() / times.priced.seconds());
    }
  }
  return slowest;
}

}  // namespace dcsim
