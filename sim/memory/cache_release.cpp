#include "sim/memory/cache_release.h"

#include <algorithm>
#include <vector>

#include "model/base/error.h"
#include "sim/memory/expandable_segments.h"

namespace dcsim {
namespace {

constexpr std::size_t kLargePool = 1;

// The cached blocks of the small (0) or large (1) pool of every stream, in PyTorch's order.
std::vector<BlockHandle> CachedBlocks(const AllocatorState& state, std::size_t size_class) {
  std::vector<BlockHandle> cached;
  for (std::size_t pool = size_class; pool < state.pools.size(); pool += 2) {
    const std::vector<BlockHandle> of_stream = state.pools[pool].free.ToVector();
    cached.insert(cached.end(), of_stream.begin(), of_stream.end());
  }
  return cached;
}

// Frees the segment of which `block` is the only block.
void ReleaseSegment(AllocatorState& state, BlockHandle block) {
  DCSIM_CHECK(!state.blocks[block].IsSplit());
  UncacheBlock(state, block);
  RecordSegmentEvent(state, SegmentEventKind::kFree, state.blocks[block]);
  RemoveSegment(state, block);
}

std::int64_t Age(const AllocatorState& state, BlockHandle block) {
  return state.searches[kLargePool] - state.searches_when_cached[block];
}

// Frees those idle segments that are at least of average age and takes them off the list.
Bytes ReleaseOld(AllocatorState& state, std::vector<BlockHandle>& idle) {
  std::int64_t total_age = 0;
  for (const BlockHandle block : idle) {
    total_age += Age(state, block);
  }
  const double average = static_cast<double>(total_age) / static_cast<double>(idle.size());
  Bytes freed;
  std::erase_if(idle, [&](BlockHandle block) {
    if (static_cast<double>(Age(state, block)) < average) {
      return false;
    }
    freed += state.blocks[block].bytes;
    ReleaseSegment(state, block);
    return true;
  });
  return freed;
}

}  // namespace

void ReleaseCachedBlocks(AllocatorState& state) {
  DCSIM_CHECK(state.pending.empty());
  for (const std::size_t size_class : {std::size_t{1}, std::size_t{0}}) {
    for (const BlockHandle block : CachedBlocks(state, size_class)) {
      if (state.config.expandable_segments) {
        UnmapPages(state, block);
      } else if (!state.blocks[block].IsSplit()) {
        ReleaseSegment(state, block);
      }
    }
  }
}

bool ReleaseOversizeBlocks(AllocatorState& state, std::size_t pool, Bytes rounded) {
  if (state.config.expandable_segments) {
    return false;
  }
  const Bytes wanted = std::max(rounded, state.config.max_split_size);
  const FreeBlocks& free = state.pools[pool].free;
  const FreeBlocks::Position fit = free.FindBestFit(wanted);
  if (!fit.is_end()) {
    ReleaseSegment(state, free.at(fit));
    return true;
  }
  Bytes freed;
  for (FreeBlocks::Position largest = free.Largest(); freed < wanted && !largest.is_end();
       largest = free.Largest()) {
    const Bytes bytes = state.blocks[free.at(largest)].bytes;
    if (bytes < state.config.max_split_size) {
      break;
    }
    freed += bytes;
    ReleaseSegment(state, free.at(largest));
  }
  return freed >= wanted;
}

void CollectGarbage(AllocatorState& state) {
  if (state.config.expandable_segments) {
    return;
  }
  const double limit = static_cast<double>(state.config.memory_limit->count());
  const Bytes threshold(
      static_cast<std::int64_t>(state.config.garbage_collection_threshold * limit));
  if (state.stats.reserved.current <= threshold) {
    return;
  }
  const Bytes target = state.stats.reserved.current - threshold;
  std::vector<BlockHandle> idle = CachedBlocks(state, kLargePool);
  std::erase_if(idle, [&](BlockHandle block) { return state.blocks[block].IsSplit(); });
  Bytes freed;
  while (freed < target && !idle.empty()) {
    freed += ReleaseOld(state, idle);  // frees at least one: no average is above the maximum
  }
}

}  // namespace dcsim
