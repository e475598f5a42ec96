#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/base/ids.h"
#include "model/base/units.h"
#include "sim/memory/allocator_call.h"
#include "sim/memory/allocator_config.h"
#include "sim/memory/allocator_stats.h"
#include "sim/memory/block_table.h"
#include "sim/memory/free_blocks.h"
#include "sim/memory/pending_frees.h"
#include "sim/memory/segment_table.h"

namespace dcsim {

/// The cached memory of one stream for one class of sizes. PyTorch keeps one pool for each class
/// and orders it by stream first, which comes to the same.
struct Pool {
  FreeBlocks free;
  std::vector<BlockHandle> unmapped;  // by address; only in expandable segments
};

/// Everything that changes in a CachingAllocator: the state on which caching_allocator.cpp,
/// expandable_segments.cpp and cache_release.cpp work.
struct AllocatorState {
  AllocatorState(const AllocatorConfig& allocator_config, SegmentPlacement placement)
      : config(allocator_config),
        segments(std::move(placement)) {}

  AllocatorConfig config;
  BlockTable blocks;
  std::vector<Pool> pools;  // by PoolIndex
  SegmentTable segments;
  PendingFrees pending;
  AllocatorStats stats;
  std::vector<SegmentEvent> events;
  std::optional<std::vector<AllocatorCall>> log;  // of what nobody has taken yet, where it is kept

  // Age of cached blocks, kept only when garbage is collected: searches of the small and of the
  // large pool so far, and by block handle their number when the block was cached.
  std::array<std::int64_t, 2> searches{};
  std::vector<std::int64_t> searches_when_cached;
};

/// Pools of a stream are neighbours: the small one is even, the large one odd.
constexpr std::size_t PoolIndex(StreamId stream, bool is_small) {
  return stream.index() * 2 + (is_small ? 0 : 1);
}
constexpr bool IsSmallPool(std::size_t pool) {
  return pool % 2 == 0;
}
constexpr StreamId StreamOfPool(std::size_t pool) {
  return StreamId(pool / 2);
}

/// True if idle segments are freed by age, as PyTorch does under a memory limit only.
inline bool CollectsGarbage(const AllocatorConfig& config) {
  return config.memory_limit.has_value() && config.garbage_collection_threshold > 0.0;
}

/// Notes when a block was cached, if that matters.
void StampCached(AllocatorState& state, BlockHandle block);

/// Caches a block: adds it to the free list of its pool.
inline void CacheBlock(AllocatorState& state, BlockHandle block) {
  state.pools[state.blocks[block].pool].free.Insert(state.blocks, block);
  if (CollectsGarbage(state.config)) {
    StampCached(state, block);
  }
}

/// Takes a block out of the free list of its pool.
inline void UncacheBlock(AllocatorState& state, BlockHandle block) {
  FreeBlocks& free = state.pools[state.blocks[block].pool].free;
  free.RemoveAt(free.Find(state.blocks, block));
}

/// Cuts a block after its first `bytes`; neither part may be in a list.
///
/// Returns the rest, in the same state as the block, kNoBlock if there is none.
BlockHandle CutAfter(AllocatorState& state, BlockHandle block, Bytes bytes);

/// True if the driver still has `bytes`.
inline bool DriverHas(const AllocatorState& state, Bytes bytes) {
  return state.stats.reserved.current + bytes <= state.config.capacity;
}

/// Logs what happens to a block, if a log is kept.
void LogBlock(AllocatorState& state, AllocatorAction action, const Block& block);

/// Writes down an exchange with the driver and counts its bytes as reserved or not.
void RecordSegmentEvent(AllocatorState& state, SegmentEventKind kind, const Block& range);

/// Makes a segment with one block over all of it, in no list yet.
///
///   pool       pool that the segment belongs to
///   bytes      size of the segment, or of the address space of an expandable one
///   first      state of its block: kFree or kUnmapped
///
/// Returns the block.
BlockHandle AddSegment(AllocatorState& state, std::size_t pool, Bytes bytes, BlockState first);

/// Forgets a segment of which `block`, in no list any more, is the only block.
void RemoveSegment(AllocatorState& state, BlockHandle block);

}  // namespace dcsim
