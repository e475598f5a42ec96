#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/schedule.h"
#include "model/machine/cluster.h"
#include "sim/engine/simulate.h"

namespace dcsim {

/// Steps after which a cache that still changes is no longer looked at.
inline constexpr std::uint32_t kMostSteps = 100;

/// How a job begins, and which of its steps are looked at.
struct FirstSteps {
  bool modules_load = true;   // in its first step; not where the process has run such a step before
  std::uint32_t awaited = 0;  // steps at whose end the host waits for the GPU, to read the loss
  std::uint32_t warmup = 2;   // before the steps that count
  std::optional<std::uint32_t> measured = {};  // that count; nothing: one, or, where memory does
                                               // not follow time, until the cache no longer changes
};

/// Whether the pace of the host decides when memory comes back (Buffer::recorded_streams), so that
/// what is reserved depends on all steps from the first on (docs/design/memory.md, When events
/// pass).
bool MemoryFollowsTime(const Schedule& schedule);

/// What the host's call of each task takes longer in the first step of a process, in which modules
/// load: HostCosts::first_call for the first task of each operator and of each other kind, and
/// HostCosts::first_collective for each rank at the first collective. By task.
std::vector<Duration> FirstCalls(const Schedule& schedule,
                                 const Graph& graph,
                                 const HostCosts& host);

/// Options of a simulation of the job from its first step on.
SimulationOptions FromTheFirst(const FirstSteps& steps,
                               const Schedule& schedule,
                               const Graph& graph,
                               const HostCosts& host,
                               SimulationOptions options);

}  // namespace dcsim
