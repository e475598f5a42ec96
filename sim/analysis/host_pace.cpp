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

bool Computes(const Task& task) {
  return task.kind == TaskKind::kCompute;
}

/// What the host is priced at for a stretch of tasks.
struct Stretch {
  Duration computing;  // its ops
  Duration between;    // its other tasks
  int launches = 0;    // of its ops
};

std::vector<Stretch> PriceStretches(const Schedule& schedule,
                                    std::span<const WorkCost> costs,
                                    std::span<const std::size_t> stretches) {
  std::vector<Stretch> priced(stretches.empty() ? 0 : stretches.back() + 1);
  std::size_t at = 0;
  for (const Task& task : schedule.tasks()) {
    Stretch& stretch = priced[stretches[at++]];
    if (Computes(task)) {
      stretch.computing += costs[task.work.index()].host;
      stretch.launches += costs[task.work.index()].launches;
    } else if (!task.on_host()) {
      stretch.between += costs[task.work.index()].host;
    }
  }
  return priced;
}

using ReadTimes = std::vector<std::optional<Duration>>;
using Times = std::span<const std::optional<Duration>>;

/// Without those of stretches in which a launch may have waited although the GPU was near before
/// and behind them: with the two stretches that it may be behind they fill the launch queue.
ReadTimes WithRoom(ReadTimes times, std::span<const Stretch> stretches, int launch_queue) {
  int launches = 0;
  for (std::size_t i = 0; i < std::min(times.size(), stretches.size()) && launch_queue > 0; ++i) {
    constexpr std::size_t kNear = 3;  // HostReading's own stretch and the two before it
    launches += stretches[i].launches - (i < kNear ? 0 : stretches[i - kNear].launches);
    if (launches >= launch_queue) {
      times[i].reset();
    }
  }
  return times;
}

/// How many times as long as priced those stretches took, from one to before another, that were
/// read; nothing where none was.
std::optional<double> Slowdown(std::span<const Stretch> stretches,
                               Duration Stretch::*price,
                               Times times,
                               std::size_t from,
                               std::size_t to) {
  Duration read;
  Duration priced;
  for (std::size_t i = from; i < std::min(stretches.size(), to); ++i) {
    if (times[i] && stretches[i].*price > Duration()) {
      read += *times[i];
      priced += stretches[i].*price;
    }
  }
  return priced > Duration() ? std::optional(read.seconds() / priced.seconds()) : std::nullopt;
}

/// The same of each stretch; nothing where none was read. Those that were not read, of which the
/// host was ahead of the GPU, take what others do; the first tells nothing of others, its calls
/// touch what the optimizer drove out of the caches. What comes behind the reading takes its mean.
std::optional<std::vector<TaskPace>> PacesOf(std::span<const Stretch> stretches,
                                             Duration Stretch::*price,
                                             Times times) {
  const auto all = Slowdown(stretches, price, times, 0, times.size());
  if (!all) {
    return std::nullopt;
  }
  const double ahead = Slowdown(stretches, price, times, 1, times.size()).value_or(1);
  std::vector<TaskPace> paces(stretches.size(), TaskPace{*all, false});
  for (std::size_t i = 0; i < std::min(stretches.size(), times.size()); ++i) {
    const auto read = Slowdown(stretches, price, times, i, i + 1);
    paces[i] = {read.value_or(ahead), read.has_value()};
  }
  return paces;
}

std::optional<HostPace> PaceOf(const HostReading& host,
                               const Schedule& schedule,
                               std::span<const WorkCost> costs,
                               int launch_queue) {
  if (host.ops <= 0) {
    return std::nullopt;
  }
  const auto stretch_of = StretchesOf(schedule, host.ops);
  const auto stretches = PriceStretches(schedule, costs, stretch_of);
  const ReadTimes times = WithRoom(host.times, stretches, launch_queue);
  const auto ops = PacesOf(stretches, &Stretch::computing, times);
  if (!ops) {
    return std::nullopt;
  }
  const auto between =
      PacesOf(stretches, &Stretch::between, WithRoom(host.between, stretches, launch_queue));
  HostPace pace;
  pace.slowdown = *Slowdown(stretches, &Stretch::computing, times, 0, times.size());
  std::size_t at = 0;
  for (const Task& task : schedule.tasks()) {
    const std::size_t stretch = stretch_of[at++];
    const bool computes = Computes(task);
    pace.tasks.push_back(computes || !between ? (*ops)[stretch] : (*between)[stretch]);
    pace.tasks.back().read &= computes || (between && !task.on_host());
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
    if (auto pace = PaceOf(rank.host, schedule, costs, inputs.cluster.host.launch_queue)) {
      paces.push_back(*std::move(pace));
    }
  }
  return paces;
}

}  // namespace dcsim
