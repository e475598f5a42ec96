#include "sim/analysis/most_reserved.h"

#include <algorithm>

#include "sim/analysis/first_steps.h"
#include "sim/analysis/settled_memory.h"

namespace dcsim {

Bytes MostReserved(const Schedule& schedule,
                   std::span<const WorkCost> costs,
                   SimulationOptions options) {
  options.allocator.capacity = kMaxCapacity;
  const AllocatorConfig& allocator = options.allocator;
  const bool known = allocator.expandable_segments || !allocator.recorded_segments.empty();
  const std::uint32_t orders = known ? 0 : kSegmentOrders;
  const bool follows_time = MemoryFollowsTime(schedule);
  Bytes most;
  const auto try_them = [&] {
    const AllocatorStats stats = follows_time ? Simulate(schedule, costs, options, {}).memory
                                              : SettledMemory(schedule, options.allocator, {});
    most = std::max(most, stats.reserved.peak);
  };
  for (std::uint32_t order = 0; order <= orders; ++order) {
    options.allocator.segment_order = order;
    try_them();
  }
  options.allocator.segment_order = 0;
  if (options.host_pace.empty() && follows_time) {
    for (const double slowdown : kHostsTried) {
      options.host_pace.assign(schedule.task_count(), TaskPace{slowdown, false});
      try_them();
    }
  }
  return most;
}

}  // namespace dcsim
