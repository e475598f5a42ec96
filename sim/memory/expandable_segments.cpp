#include "sim/memory/expandable_segments.h"

#include <algorithm>

#include "model/base/error.h"

namespace dcsim {
namespace {

Bytes PageSize(const AllocatorState& state, std::size_t pool) {
  return IsSmallPool(pool) ? kSmallSegment : state.config.large_segment_size;
}

bool IsFree(const AllocatorState& state, BlockHandle block) {
  return block != kNoBlock && state.blocks[block].state == BlockState::kFree;
}

bool IsUnmapped(const AllocatorState& state, BlockHandle block) {
  return block != kNoBlock && state.blocks[block].state == BlockState::kUnmapped;
}

// Free and unmapped bytes that follow each other from `block` on; stops counting at `enough`.
Bytes RoomFrom(const AllocatorState& state, BlockHandle block, Bytes enough) {
  Bytes room;
  while (room < enough && (IsFree(state, block) || IsUnmapped(state, block))) {
    room += state.blocks[block].bytes;
    block = state.blocks[block].next;
  }
  return room;
}

std::vector<BlockHandle>::iterator UnmappedPosition(AllocatorState& state, BlockHandle block) {
  std::vector<BlockHandle>& unmapped = state.pools[state.blocks[block].pool].unmapped;
  return std::lower_bound(unmapped.begin(), unmapped.end(), state.blocks[block].address,
                          [&state](BlockHandle entry, std::uint64_t address) {
                            return state.blocks[entry].address < address;
                          });
}

void AddUnmapped(AllocatorState& state, BlockHandle block) {
  const auto position = UnmappedPosition(state, block);
  state.pools[state.blocks[block].pool].unmapped.insert(position, block);
}

void RemoveUnmapped(AllocatorState& state, BlockHandle block) {
  const auto position = UnmappedPosition(state, block);
  DCSIM_CHECK(*position == block) << "block is not in the list of unmapped ranges";
  state.pools[state.blocks[block].pool].unmapped.erase(position);
}

BlockHandle FindRoom(AllocatorState& state, std::size_t pool, Bytes bytes) {
  for (const BlockHandle unmapped : state.pools[pool].unmapped) {
    const BlockHandle before = state.blocks[unmapped].previous;
    const BlockHandle start = IsFree(state, before) ? before : unmapped;
    if (RoomFrom(state, start, bytes) >= bytes) {
      return start;
    }
  }
  const std::int64_t device_bytes =
      state.config.device_memory.value_or(state.config.capacity).count();
  const Bytes address_space(
      RoundUp(device_bytes + device_bytes / 8, PageSize(state, pool).count()));
  const BlockHandle segment = AddSegment(state, pool, address_space, BlockState::kUnmapped);
  AddUnmapped(state, segment);
  return segment;
}

// Maps the pages that hold the first `bytes` of an unmapped range, and joins them with the free
// blocks around. Returns the cached block, kNoBlock if the driver has too little memory.
BlockHandle MapFront(AllocatorState& state, BlockHandle block, Bytes bytes) {
  const std::size_t pool = state.blocks[block].pool;
  const Bytes mapped(RoundUp(bytes.count(), PageSize(state, pool).count()));
  if (!DriverHas(state, mapped)) {
    return kNoBlock;
  }
  RemoveUnmapped(state, block);
  const BlockHandle rest = CutAfter(state, block, mapped);
  if (rest != kNoBlock) {
    AddUnmapped(state, rest);
  }
  state.blocks[block].state = BlockState::kFree;
  RecordSegmentEvent(state, SegmentEventKind::kMap, state.blocks[block]);
  const BlockHandle next = state.blocks[block].next;
  if (IsFree(state, next)) {
    UncacheBlock(state, next);
    state.blocks.JoinToPrevious(next);
  }
  const BlockHandle previous = state.blocks[block].previous;
  if (IsFree(state, previous)) {
    UncacheBlock(state, previous);
    state.blocks.JoinToPrevious(block);
    block = previous;
  }
  CacheBlock(state, block);
  return block;
}

// Joins an unmapped range that is in no list with the unmapped ranges around, and lists the whole.
BlockHandle ListUnmapped(AllocatorState& state, BlockHandle block) {
  const BlockHandle next = state.blocks[block].next;
  if (IsUnmapped(state, next)) {
    RemoveUnmapped(state, next);
    state.blocks.JoinToPrevious(next);
  }
  const BlockHandle previous = state.blocks[block].previous;
  if (IsUnmapped(state, previous)) {
    state.blocks.JoinToPrevious(block);
    return previous;
  }
  AddUnmapped(state, block);
  return block;
}

}  // namespace

BlockHandle MapRoom(AllocatorState& state, std::size_t pool, Bytes bytes) {
  BlockHandle block = FindRoom(state, pool, bytes);
  if (IsUnmapped(state, block)) {
    block = MapFront(state, block, std::min(bytes, state.blocks[block].bytes));
  }
  while (block != kNoBlock && state.blocks[block].bytes < bytes) {
    const BlockHandle next = state.blocks[block].next;
    if (next == kNoBlock) {
      return kNoBlock;  // more than a segment's addresses, which are more than the device's memory
    }
    const Bytes missing = bytes - state.blocks[block].bytes;
    block = MapFront(state, next, std::min(missing, state.blocks[next].bytes));
  }
  return block;
}

void UnmapPages(AllocatorState& state, BlockHandle block) {
  const std::size_t pool = state.blocks[block].pool;
  const std::uint64_t base = state.segments[state.blocks[block].segment].address;
  const std::int64_t page = PageSize(state, pool).count();
  const auto begin = static_cast<std::int64_t>(state.blocks[block].address - base);
  const std::int64_t end = begin + state.blocks[block].bytes.count();
  const std::int64_t first = RoundUp(begin, page);
  const std::int64_t last = end / page * page;
  if (first >= last) {
    return;
  }
  UncacheBlock(state, block);
  BlockHandle pages = block;
  if (first > begin) {
    pages = CutAfter(state, block, Bytes(first - begin));
    CacheBlock(state, block);
  }
  const BlockHandle rest = CutAfter(state, pages, Bytes(last - first));
  if (rest != kNoBlock) {
    CacheBlock(state, rest);
  }
  state.blocks[pages].state = BlockState::kUnmapped;
  RecordSegmentEvent(state, SegmentEventKind::kUnmap, state.blocks[pages]);
  pages = ListUnmapped(state, pages);
  if (!state.blocks[pages].IsSplit()) {
    RemoveUnmapped(state, pages);
    RemoveSegment(state, pages);
  }
}

}  // namespace dcsim
