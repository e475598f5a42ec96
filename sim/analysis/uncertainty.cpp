#include "sim/analysis/uncertainty.h"

#include <cmath>
#include <functional>
#include <future>
#include <span>
#include <vector>

#include "model/base/scaled.h"
#include "model/cost/work_cost.h"
#include "sim/analysis/what_if.h"

namespace dcsim {
namespace {

/// Profiled times err less than the roofline, and that less than guesses.
double OpError(const WorkCost& cost, const PartErrors& errors) {
  if (cost.source != Source::kEstimated) {
    return errors.ops;
  }
  return cost.guessed ? errors.guessed.value_or(errors.roofline) : errors.roofline;
}

double CollectiveError(const WorkCost& cost, const PartErrors& errors) {
  return std::hypot(errors.collectives, errors.sizes * cost.distance.sizes,
                    errors.ranks * cost.distance.ranks);
}

/// The error of all works of a kind together, whose errors are alike: the mean by time; `none`
/// where there are no such works.
double MeanError(const Schedule& schedule,
                 std::span<const WorkCost> costs,
                 Work::Kind kind,
                 double none,
                 const std::function<double(const WorkCost&)>& error) {
  double all = 0;
  double erring = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (schedule.works()[i].kind == kind) {
      const auto time = static_cast<double>(costs[i].device.ns());
      all += time;
      erring += time * error(costs[i]);
    }
  }
  return all == 0 ? none : erring / all;
}

/// "all_gather of 16 ranks on 2 nodes", of a collective like which nothing was measured; else
/// nothing.
std::string UnmeasuredCollective(const Schedule& schedule,
                                 std::span<const WorkCost> costs,
                                 const Cluster& cluster) {
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const Work& work = schedule.works()[i];
    if (work.kind != Work::Kind::kCollective || !costs[i].of_link) {
      continue;
    }
    const Collective& collective = schedule.collective(CollectiveId(work.subject));
    const int nodes = cluster.NodesOf(collective.ranks);
    std::string text(CollectiveKindName(collective.kind));
    text += collective.engine == Engine::kCopyEngine ? " by copy engines" : "";
    text += " of " + std::to_string(collective.ranks) + " ranks on ";
    return text + (nodes == 1 ? "one node" : std::to_string(nodes) + " nodes");
  }
  return "";
}

}  // namespace

StepTimeBound FindStepTimeBound(Duration step_time,
                                const Schedule& schedule,
                                const ClockedCosts& clocked,
                                const Cluster& cluster) {
  if (!cluster.gpu.errors) {
    return {std::nullopt,
            "no step was ever measured on " + cluster.gpu.name + ": its GPU file has no errors"};
  }
  const std::string unmeasured = UnmeasuredCollective(schedule, clocked.costs, cluster);
  if (!unmeasured.empty()) {
    return {std::nullopt,
            "no " + unmeasured + " was ever measured: its time is a formula of the link"};
  }
  const PartErrors& errors = *cluster.gpu.errors;
  std::vector<Change> changes(5);
  changes[0].ops = 1 + MeanError(schedule, clocked.costs, Work::Kind::kOp, errors.ops,
                                 [&](const WorkCost& cost) { return OpError(cost, errors); });
  changes[1].collectives =
      1 + MeanError(schedule, clocked.costs, Work::Kind::kCollective, errors.collectives,
                    [&](const WorkCost& cost) { return CollectiveError(cost, errors); });
  changes[2].contention = 1 + errors.contention;
  changes[3].host = 1 + errors.host;
  changes[4].host_copies = 1 + errors.host_copies;
  if (!cluster.gpu.gaps.waiting_measured) {
    changes.emplace_back().waiting_streams = false;
  }
  const auto fixed = static_cast<double>(errors.step.ns());
  double variance = fixed * fixed;
  std::vector<std::future<Duration>> times;
  times.reserve(changes.size());
  for (const Change& change : changes) {
    times.push_back(std::async(std::launch::async, [&schedule, &clocked, &cluster, &change] {
      return StepTimeWith(change, schedule, clocked, cluster);
    }));
  }
  for (std::future<Duration>& time : times) {
    const auto difference = static_cast<double>((time.get() - step_time).ns());
    variance += difference * difference;
  }
  constexpr double kNineOfTen = 1.645;
  return {NearestNs(kNineOfTen * std::sqrt(variance)), ""};
}

}  // namespace dcsim
