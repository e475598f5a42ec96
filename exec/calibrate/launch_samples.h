#pragma once

#include <vector>

#include "model/cost/launch_time.h"
#include "model/ir/graph.h"
#include "model/ir/profile.h"
#include "model/machine/gpu.h"

namespace dcsim::exec {

/// A launch of a Triton kernel that a step makes `count` times, with equal sizes.
struct LaunchSample {
  LaunchWork work;
  double seconds = 0;  // measured, the median of them
  std::size_t count = 1;
};

/// All of a workload's step.
struct WorkloadLaunches {
  std::vector<LaunchSample> samples;
  double seconds = 0;  // measured, of all launches together
};

/// Those that a profile of a compiled form has times of, on this kind of GPU. The GPU's own rates
/// do not matter.
WorkloadLaunches LaunchesOf(const Graph& graph, const Profile& profile, const GpuSpec& gpu);

/// What a workload's step does in another form of it, as of another stage, too.
void AddLaunches(const WorkloadLaunches& of, WorkloadLaunches& to);

}  // namespace dcsim::exec
