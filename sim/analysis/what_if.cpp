#include "sim/analysis/what_if.h"

#include <algorithm>
#include <cmath>

#include "model/base/scaled.h"
#include "sim/analysis/predict.h"

namespace dcsim {
namespace {

/// What wire bytes take less on a wider bus.
Duration Widened(Duration time,
                 const Collective& collective,
                 const Change& change,
                 const Link& link) {
  if (change.more_bandwidth == 0 || collective.ranks < 2) {
    return time;
  }
  const auto wire = static_cast<double>(collective.wire().count());
  const auto before = static_cast<double>(link.bus_bandwidth.count());
  const double saved = wire / before - wire / (before + static_cast<double>(change.more_bandwidth));
  return std::max(Duration::FromNs(1), time - WholeNs(saved * 1e9));
}

/// A speed beside others, with what is lost scaled.
Rate Changed(Rate rate, double factor) {
  const auto lost = static_cast<double>(rate.share().Rest().permille()) * factor;
  return Rate::FromPermille(Rate().permille() - std::lround(lost));
}

Contention Changed(Contention contention, double factor) {
  for (Contention::Row& row : contention.rates) {
    for (Rate& rate : row) {
      rate = Changed(rate, factor);
    }
  }
  contention.measured = contention.measured && factor > 0;
  return contention;
}

WorkCost Changed(WorkCost cost,
                 const Work& work,
                 const Schedule& schedule,
                 const Change& change,
                 const Cluster& cluster) {
  cost.host = Scaled(cost.host, change.host);
  cost.further = Scaled(cost.further, change.host);
  const auto lose = [&change](std::optional<Rate>& rate) {
    rate = rate ? std::optional(Changed(*rate, change.contention)) : std::nullopt;
  };
  switch (work.kind) {
    case Work::Kind::kOp:
      cost.device = Scaled(cost.device, change.ops);
      cost.room = Scaled(cost.room, change.ops);
      lose(cost.beside_collective);
      break;
    case Work::Kind::kMemory:
      lose(cost.beside_host_copy);
      cost.device =
          Scaled(cost.device, cost.beside_host_copy ? change.host_copies : change.memory_work);
      break;
    case Work::Kind::kCollective: {
      const Link& link =
          cluster.nodes > 1 && cluster.inter_node ? *cluster.inter_node : cluster.intra_node;
      const Collective& collective = schedule.collective(CollectiveId(work.subject));
      cost.device = Widened(Scaled(cost.device, change.collectives), collective, change, link);
      break;
    }
    case Work::Kind::kNone:
      break;
  }
  return cost;
}

}  // namespace

Duration StepTimeWith(const Change& change,
                      const Schedule& schedule,
                      const ClockedCosts& clocked,
                      const Cluster& cluster) {
  std::vector<WorkCost> changed;
  changed.reserve(clocked.costs.size());
  for (std::size_t i = 0; i < clocked.costs.size(); ++i) {
    changed.push_back(Changed(clocked.costs[i], schedule.works()[i], schedule, change, cluster));
  }
  SimulationOptions options = OptionsFor(schedule, cluster, clocked.clock_mhz);
  options.contention = Changed(options.contention, change.contention);
  options.synchronize = Scaled(options.synchronize, change.host);
  options.record = Scaled(options.record, change.host);
  options.take_back = Scaled(options.take_back, change.host);
  if (!change.waiting_streams) {
    options.waiting_delays = {};
  }
  if (!change.gaps) {
    options.collective_gap = Duration();
    options.queued_gap = Duration();
  }
  const Simulation simulation = Simulate(schedule, changed, options, {});
  return simulation.outcome == Outcome::kCompleted
             ? simulation.measured_step_times(options.warmup_steps).front()
             : Duration();
}

std::vector<Change> RemovedCauses() {
  std::vector<Change> changes(7);
  changes[0].name = "collectives take no time";
  changes[0].collectives = 0;
  changes[1].name = "nothing slows anything beside it";
  changes[1].contention = 0;
  changes[2].name = "collectives start at once";
  changes[2].gaps = false;
  changes[3].name = "the host's calls take no time";
  changes[3].host = 0;
  changes[4].name = "copies and the optimizer take no time";
  changes[4].memory_work = 0;
  changes[4].host_copies = 0;
  changes[5].name = "waiting streams delay no kernels";
  changes[5].waiting_streams = false;
  changes[6].name = "1 GB/s more on the slowest link";
  changes[6].more_bandwidth = 1'000'000'000;
  return changes;
}

std::vector<Change> TableErrors() {
  std::vector<Change> changes(8);
  changes[0].name = "ops 5 % slower";
  changes[0].ops = 1.05;
  changes[1].name = "ops 5 % faster";
  changes[1].ops = 0.95;
  changes[2].name = "collectives 10 % slower";
  changes[2].collectives = 1.1;
  changes[3].name = "collectives 10 % faster";
  changes[3].collectives = 0.9;
  changes[4].name = "30 % more lost beside others";
  changes[4].contention = 1.3;
  changes[5].name = "30 % less lost beside others";
  changes[5].contention = 0.7;
  changes[6].name = "host calls 20 % slower";
  changes[6].host = 1.2;
  changes[7].name = "host calls 20 % faster";
  changes[7].host = 0.8;
  return changes;
}

}  // namespace dcsim
