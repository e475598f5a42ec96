#include "tools/dc_run/measured_result.h"

#include <algorithm>

#include "model/base/median.h"
#include "model/ir/plan_reader.h"

namespace dcsim {
namespace {

std::vector<Duration> SlowestRank(const std::vector<exec::RankMeasurement>& ranks) {
  std::vector<Duration> times = ranks.front().step_times;
  for (const exec::RankMeasurement& rank : ranks) {
    for (std::size_t i = 0; i < times.size(); ++i) {
      times[i] = std::max(times[i], rank.step_times[i]);
    }
  }
  return times;
}

/// The rank that the others wait for, and that a prediction follows: it waits least itself.
const exec::RankMeasurement& LeastExposed(const std::vector<exec::RankMeasurement>& ranks) {
  return *std::min_element(ranks.begin(), ranks.end(),
                           [](const exec::RankMeasurement& a, const exec::RankMeasurement& b) {
                             return a.exposed_communication < b.exposed_communication;
                           });
}

void AddMemory(const std::vector<exec::RankMeasurement>& ranks, Result& result) {
  for (const exec::RankMeasurement& rank : ranks) {
    result.peak_allocated = std::max(result.peak_allocated, rank.peak_allocated);
    result.peak_active = std::max(result.peak_active, rank.peak_active);
    result.peak_reserved = std::max(result.peak_reserved, rank.peak_reserved);
    result.outside_allocator = std::max(result.outside_allocator, rank.outside_allocator);
    result.allocated_after_step = std::max(result.allocated_after_step, rank.allocated_after_step);
    result.allocator_retries = std::max(result.allocator_retries, rank.retries);
  }
}

/// Calls and bytes as the schedule issued them, busy time as traced, mean over ranks.
std::vector<CollectiveTotals> Collectives(const Schedule& schedule,
                                          const std::vector<exec::RankMeasurement>& ranks) {
  std::vector<CollectiveTotals> all(CollectiveKindNames().size());
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    const Collective* collective = schedule.FindCollective(TaskId(i));
    if (collective == nullptr) {
      continue;
    }
    CollectiveTotals& totals = all[static_cast<std::size_t>(collective->kind)];
    totals.calls += static_cast<std::int64_t>(collective->launches());
    ++totals.launches;
    totals.payload += collective->payload();
    totals.wire += collective->wire();
  }
  std::vector<CollectiveTotals> used;
  for (std::size_t kind = 0; kind < all.size(); ++kind) {
    all[kind].kind = static_cast<CollectiveKind>(kind);
    std::int64_t busy = 0;
    for (const exec::RankMeasurement& rank : ranks) {
      busy += kind < rank.busy.size() ? rank.busy[kind].busy.ns() : 0;
    }
    all[kind].busy = Duration::FromNs(busy / static_cast<std::int64_t>(ranks.size()));
    if (all[kind].launches > 0) {
      used.push_back(all[kind]);
    }
  }
  return used;
}

/// Of the measured steps the one that took the median time; all ranks' hosts are read in it.
std::size_t MiddleStep(const std::vector<Duration>& times) {
  return static_cast<std::size_t>(std::ranges::find(times, Median(times)) - times.begin());
}

HostReading HostOf(const exec::RankMeasurement& rank, std::size_t step) {
  HostReading host = step < rank.hosts.size() ? rank.hosts[step] : HostReading();
  if (host.ops > 0) {
    host.step = static_cast<std::int64_t>(step);
  }
  host.stolen = rank.stolen;
  return host;
}

std::vector<double> MeanLosses(const std::vector<exec::RankMeasurement>& ranks) {
  std::vector<double> losses = ranks.front().losses;
  for (std::size_t step = 0; step < losses.size(); ++step) {
    double sum = 0;
    for (const exec::RankMeasurement& rank : ranks) {
      sum += rank.losses[step];
    }
    losses[step] = sum / static_cast<double>(ranks.size());
  }
  return losses;
}

}  // namespace

Result MeasuredResult(const ExecutionCase& execution,
                      const std::vector<exec::RankMeasurement>& ranks) {
  const Graph& graph = execution.graph();
  Result result;
  result.origin = Origin::kMeasured;
  MeasurementNotes notes;
  notes.step_times = SlowestRank(ranks);
  notes.losses = MeanLosses(ranks);
  const std::size_t middle = MiddleStep(notes.step_times);
  for (const exec::RankMeasurement& rank : ranks) {
    notes.ranks.push_back({rank.compute, rank.exposed_communication, rank.traced_step,
                           rank.peak_allocated, rank.least_peak_allocated, rank.peak_reserved,
                           rank.outside_allocator, rank.sm_clock_mhz, rank.watts,
                           HostOf(rank, middle), rank.first_host, rank.reserved_after,
                           rank.waiting_delays, rank.segments});
  }
  result.step_time = Median(notes.step_times);
  const exec::RankMeasurement& waited_for = LeastExposed(ranks);
  result.compute = waited_for.compute;
  result.exposed_communication = waited_for.exposed_communication;
  AddMemory(ranks, result);
  result.host_pinned = execution.schedule.host_pinned();
  result.collectives = Collectives(execution.schedule, ranks);
  result.workload = graph.name;
  result.graph_hash = graph.hash;
  result.plan = PrintPlan(execution.plan, graph);
  result.gpus = execution.plan.ranks;
  result.sources = {1, 0, 0};
  const double tokens = static_cast<double>(graph.tokens) *
                        execution.plan.options.gradient_accumulation_steps * execution.plan.ranks;
  result.tokens_per_second = tokens / result.step_time.seconds();
  result.measurement = std::move(notes);
  return result;
}

}  // namespace dcsim
