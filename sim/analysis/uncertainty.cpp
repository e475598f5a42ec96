#include "sim/analysis/uncertainty.h"

#include <cmath>
#include <span>
#include <vector>

#include "model/base/scaled.h"
#include "model/cost/work_cost.h"
#include "sim/analysis/what_if.h"

namespace dcsim {
namespace {

/// Profiled times err less than the roofline, and that less than guesses.
double ErrorOf(const WorkCost& cost, const PartErrors& errors) {
  if (cost.source != Source::kEstimated) {
    return errors.ops;
  }
  return cost.guessed ? errors.guessed.value_or(errors.roofline) : errors.roofline;
}

/// Of all op times together.
double OpError(const Schedule& schedule,
               std::span<const WorkCost> costs,
               const PartErrors& errors) {
  double all = 0;
  double erring = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (schedule.works()[i].kind == Work::Kind::kOp) {
      const auto time = static_cast<double>(costs[i].device.ns());
      all += time;
      erring += time * ErrorOf(costs[i], errors);
    }
  }
  return all == 0 ? errors.ops : erring / all;
}

}  // namespace

std::optional<Duration> StepTimeBound(Duration step_time,
                                      const Schedule& schedule,
                                      const ClockedCosts& clocked,
                                      const Cluster& cluster) {
  if (!cluster.gpu.errors) {
    return std::nullopt;
  }
  const PartErrors& errors = *cluster.gpu.errors;
  std::vector<Change> changes(5);
  changes[0].ops = 1 + OpError(schedule, clocked.costs, errors);
  changes[1].collectives = 1 + errors.collectives;
  changes[2].contention = 1 + errors.contention;
  changes[3].host = 1 + errors.host;
  changes[4].host_copies = 1 + errors.host_copies;
  if (!cluster.gpu.gaps.waiting_measured) {
    changes.emplace_back().waiting_streams = false;
  }
  const auto fixed = static_cast<double>(errors.step.ns());
  double variance = fixed * fixed;
  for (const Change& change : changes) {
    const Duration time = StepTimeWith(change, schedule, clocked, cluster);
    const auto difference = static_cast<double>((time - step_time).ns());
    variance += difference * difference;
  }
  constexpr double kNineOfTen = 1.645;
  return NearestNs(kNineOfTen * std::sqrt(variance));
}

}  // namespace dcsim
