#pragma once

#include <array>
#include <span>

#include "model/cost/work_cost.h"
#include "model/ir/schedule.h"
#include "sim/engine/simulate.h"

namespace dcsim {

/// Shuffled orders of segments that MostReserved tries besides the driver's usual one. Where half
/// of all orders need more, one in 128 misses that.
inline constexpr std::uint32_t kSegmentOrders = 7;

/// How many times as long as priced the hosts take that MostReserved tries. Measured steps had
/// hosts of 0.9 to 4.4 (docs/design/memory.md).
inline constexpr std::array<double, 5> kHostsTried = {0.7, 1.4, 2, 2.8, 4};

/// The largest peak of reserved bytes in memory without end, over what decides it and is not known
/// before:
/// - the addresses at which the driver puts segments, of which several orders are tried
///   (AllocatorConfig::segment_order). With expandable segments and with recorded addresses there
///   is one;
/// - where buffers wait for streams that use them (Buffer::recorded_streams), how far the host is
///   ahead of the GPU: hosts of other paces are tried, unless the options name the host's.
///
///   costs     by work; like all options but the allocator's they matter where memory follows time
///   options   of the simulation whose peak is in question. Where memory does not follow time the
///             peak is that of steps until the cache no longer changes (SettledMemory)
Bytes MostReserved(const Schedule& schedule,
                   std::span<const WorkCost> costs,
                   SimulationOptions options);

}  // namespace dcsim
