#include "sim/analysis/most_reserved.h"

#include <algorithm>

#include "sim/analysis/first_steps.h"

namespace dcsim {

Bytes MostReserved(const Schedule& schedule,
                   std::span<const WorkCost> costs,
                   SimulationOptions options) {
  options.allocator.capacity = kMaxCapacity;
  const AllocatorConfig& allocator = options.allocator;
  const bool known = allocator.expandable_segments || !allocator.recorded_segments.empty();
  const std::uint32_t orders = known ? 0 : kSegmentOrders;
  Bytes most;
  const auto try_them = [&] {
    most = std::max(most, Simulate(schedule, costs, options, {}).memory.reserved.peak);
  };
  for (std::uint32_t order = 0; order <= orders; ++order) {
    options.allocator.segment_order = order;
    try_them();
  }
  options.allocator.segment_order = 0;
  if (options.host_pace.empty() && MemoryFollowsTime(schedule)) {
    for (const double slowdown : kHostsTried) {
      options.host_pace.assign(schedule.task_count(), TaskPace{slowdown, false});
      try_them();
    }
  }
  return most;
}

}  // namespace dcsim
