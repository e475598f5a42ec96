#include "sim/analysis/segment_orders.h"

#include <algorithm>

namespace dcsim {

Bytes MostReserved(const Schedule& schedule,
                   std::span<const WorkCost> costs,
                   SimulationOptions options) {
  options.allocator.capacity = kMaxCapacity;
  const AllocatorConfig& allocator = options.allocator;
  const bool known = allocator.expandable_segments || !allocator.segment_addresses.empty();
  const std::uint32_t orders = known ? 0 : kSegmentOrders;
  Bytes most;
  for (std::uint32_t order = 0; order <= orders; ++order) {
    options.allocator.segment_order = order;
    most = std::max(most, Simulate(schedule, costs, options, {}).memory.reserved.peak);
  }
  return most;
}

}  // namespace dcsim
