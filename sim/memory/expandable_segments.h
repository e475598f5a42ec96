#pragma once

#include "model/base/units.h"
#include "sim/memory/allocator_state.h"

namespace dcsim {

/// Makes room in an expandable segment by mapping pages, of 2 MiB in a small pool and of
/// large_segment_size in a large one.
///
///   pool    where a block is wanted that no cached block can serve
///   bytes   rounded size of the block
///
/// Takes the lowest address at which free and unmapped ranges that follow each other hold `bytes`,
/// starting at an unmapped range or at the free block before it, and maps only the pages missing
/// there. A pool without such a range gets a new segment of 9/8 of the device's memory in address
/// space.
///
/// Returns a cached block of at least `bytes`, kNoBlock if the driver has too little memory or a
/// segment too few addresses (the capacity may be set above the device's memory). Pages that were
/// mapped before stay mapped.
BlockHandle MapRoom(AllocatorState& state, std::size_t pool, Bytes bytes);

/// Gives the whole pages inside a cached block back to the driver. What lies before and behind
/// them stays cached. A segment of which nothing is mapped any more is removed.
void UnmapPages(AllocatorState& state, BlockHandle block);

}  // namespace dcsim
