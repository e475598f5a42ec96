#include "model/cost/power.h"

#include <algorithm>
#include <cmath>

#include "model/cost/kernel_traits.h"
#include "model/ir/micro_steps.h"

namespace dcsim {
namespace {

/// Clocks this close to the highest are the highest: power did not limit them.
constexpr double kUnlimited = 0.995;

double Watts(const PowerModel& power, DeviceUse use) {
  return power.watts[static_cast<std::size_t>(use)];
}

/// Watts of an op that takes `time`: a product's go with what it reaches of the tensor cores' peak,
/// from those of streaming to PowerModel::watts, which are those of large products.
double OpWatts(const PowerModel& power, const KernelTraits& of, Duration time, const GpuSpec& gpu) {
  constexpr double kLargeProducts = 0.75;  // of the peak
  const DeviceUse use = UseOf(of);
  double peak = 0;
  for (const MatmulPeak& entry : gpu.matmul) {
    peak = std::max(peak, entry.flops_per_second);
  }
  if (use != DeviceUse::kMatmul || time.ns() == 0 || peak == 0) {
    return Watts(power, use);
  }
  const double reached = static_cast<double>(of.flops) / time.seconds() / peak;
  const double streaming = Watts(power, DeviceUse::kStreaming);
  return streaming + (Watts(power, use) - streaming) * std::min(1.0, reached / kLargeProducts);
}

/// The energy of the profiled forward and backward over what PowerModel::watts gives for it; 1
/// where the profile says no clock.
double ProfiledShare(const Graph& graph, const Profile* profile, const GpuSpec& gpu) {
  const PowerModel& power = *gpu.power;
  if (profile == nullptr || profile->sm_clock_mhz <= 0) {
    return 1;
  }
  // A part of the ops does not say what all of them took: products take more than the rest.
  if (profile->borrowed_from) {
    return ProfiledShare(profile->borrowed_from->graph, &profile->borrowed_from->profile, gpu);
  }
  double expected = 0;
  for (const OpProfile& op : profile->ops) {
    expected +=
        op.device_time.seconds() * OpWatts(power, TraitsOf(graph, op.op), op.device_time, gpu);
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
  const std::vector<std::int64_t> times = TimesInStep(schedule);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Work& work = schedule.works()[i];
    const WorkCost& cost = costs[i];
    const Duration time = cost.device - cost.gaps;
    const double watts =
        work.kind == Work::Kind::kOp
            ? OpWatts(power, TraitsOf(graph, OpId(work.subject)), time, cluster.gpu)
            : Watts(power, cost.use);
    energy += static_cast<double>(times[i]) * time.seconds() * watts;
  }
  return energy * ProfiledShare(graph, profile, cluster.gpu) * cluster.straggler_power;
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
