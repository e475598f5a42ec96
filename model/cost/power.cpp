#include "model/cost/power.h"

#include <algorithm>
#include <cmath>

namespace dcsim {
namespace {

/// Clocks this close to the highest are the highest: power did not limit them.
constexpr double kUnlimited = 0.995;

double Watts(const PowerModel& power, DeviceUse use) {
  return power.watts[static_cast<std::size_t>(use)];
}

/// The energy of the profiled forward and backward over what PowerModel::watts gives for it; 1
/// where the profile says no clock.
double ProfiledShare(const Graph& graph, const Profile* profile, const PowerModel& power) {
  if (profile == nullptr || profile->sm_clock_mhz <= 0) {
    return 1;
  }
  double expected = 0;
  for (const OpProfile& op : profile->ops) {
    const auto kernels = static_cast<std::int64_t>(op.kernels.size());
    const Duration time = op.device_time + profile->kernel_gap * kernels;
    expected += time.seconds() * Watts(power, UseOf(graph, op.op));
  }
  if (expected <= 0) {
    return 1;
  }
  const double share = profile->sm_clock_mhz / power.highest_mhz;
  const double at_limit = (power.limit_watts - power.idle_watts) * profile->step_time.seconds() /
                          std::pow(share, power.exponent) / expected;
  return share < kUnlimited ? at_limit : std::min(1.0, at_limit);
}

}  // namespace

double ProfiledClock(const Profile* profile, const PowerModel& power) {
  return profile == nullptr || profile->sm_clock_mhz <= 0 ? power.profiled_mhz
                                                          : profile->sm_clock_mhz;
}

double StepEnergy(const Schedule& schedule,
                  const Graph& graph,
                  const Profile* profile,
                  const Cluster& cluster,
                  std::span<const WorkCost> costs) {
  const PowerModel& power = *cluster.gpu.power;
  double energy = 0;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    const WorkCost& cost = costs[schedule.task(TaskId(i)).work.index()];
    energy += cost.device.seconds() * Watts(power, cost.use);
  }
  return energy * ProfiledShare(graph, profile, power) * cluster.straggler_power;
}

double PowerLimit(const Cluster& cluster) {
  return cluster.power_limit_watts.value_or(cluster.gpu.power->limit_watts);
}

double ClockWithinLimit(const Cluster& cluster, double energy, Duration step) {
  const PowerModel& power = *cluster.gpu.power;
  const double left = PowerLimit(cluster) - power.idle_watts;
  const double needed = energy / step.seconds();
  return needed <= left ? power.highest_mhz
                        : power.highest_mhz * std::pow(left / needed, 1 / power.exponent);
}

}  // namespace dcsim
