#pragma once

#include "model/base/units.h"
#include "sim/memory/allocator_state.h"

namespace dcsim {

/// Gives all cached memory back to the driver that can be: segments of one free block, and the
/// whole free pages of expandable segments. Large pools first, streams in the order of their ids.
/// No event may be pending.
void ReleaseCachedBlocks(AllocatorState& state);

/// With max_split_size set, frees cached segments of that size or more of one pool: the smallest
/// that would hold the request, or else the largest ones until together they would.
///
///   pool      pool of the request
///   rounded   rounded size of the request
///
/// Returns true if enough was freed that a segment for the request is worth another attempt.
bool ReleaseOversizeBlocks(AllocatorState& state, std::size_t pool, Bytes rounded);

/// Frees idle segments of the large pools once reserved memory exceeds
/// garbage_collection_threshold * memory_limit: those of at least average age, again until enough
/// is freed. Age is the number of searches for a large block since the segment became idle.
/// Both settings must be set. Expandable segments are left alone.
void CollectGarbage(AllocatorState& state);

}  // namespace dcsim
