#pragma once

#include <span>

#include "model/cost/work_cost.h"
#include "model/ir/schedule.h"
#include "sim/engine/simulate.h"

namespace dcsim {

/// Shuffled orders of segments that MostReserved tries besides the driver's usual one. Where half
/// of all orders need more, one in 128 misses that.
inline constexpr std::uint32_t kSegmentOrders = 7;

/// The largest peak of reserved bytes over several orders of the addresses at which the driver may
/// put segments (AllocatorConfig::segment_order), in memory without end. With expandable segments
/// and with recorded addresses there is one order.
///
///   costs     by work
///   options   of the simulation whose peak is in question
Bytes MostReserved(const Schedule& schedule,
                   std::span<const WorkCost> costs,
                   SimulationOptions options);

}  // namespace dcsim
