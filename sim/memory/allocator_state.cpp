#include "sim/memory/allocator_state.h"

#include <array>

namespace dcsim {

void StampCached(AllocatorState& state, BlockHandle block) {
  if (block >= state.searches_when_cached.size()) {
    state.searches_when_cached.resize(state.blocks.size());
  }
  state.searches_when_cached[block] = state.searches[state.blocks[block].pool % 2];
}

BlockHandle CutAfter(AllocatorState& state, BlockHandle block, Bytes bytes) {
  Block rest = state.blocks[block];
  if (rest.bytes == bytes) {
    return kNoBlock;
  }
  rest.address += static_cast<std::uint64_t>(bytes.count());
  rest.bytes -= bytes;
  state.blocks[block].bytes = bytes;
  return state.blocks.AddAfter(block, rest);
}

void LogBlock(AllocatorState& state, AllocatorAction action, const Block& block) {
  if (state.log) [[unlikely]] {
    state.log->push_back({.action = action,
                          .address = block.address,
                          .bytes = block.bytes,
                          .requested = block.requested_bytes,
                          .stream = StreamOfPool(block.pool),
                          .is_small = IsSmallPool(block.pool)});
  }
}

void RecordSegmentEvent(AllocatorState& state, SegmentEventKind kind, const Block& range) {
  state.events.push_back({.kind = kind,
                          .address = range.address,
                          .bytes = range.bytes,
                          .stream = StreamOfPool(range.pool)});
  constexpr std::array kActions = {AllocatorAction::kSegmentAlloc, AllocatorAction::kSegmentFree,
                                   AllocatorAction::kSegmentMap, AllocatorAction::kSegmentUnmap};
  Block whole = range;
  whole.requested_bytes = range.bytes;
  LogBlock(state, kActions[static_cast<std::size_t>(kind)], whole);
  switch (kind) {
    case SegmentEventKind::kAlloc:
      state.stats.segments.Add(1);
      [[fallthrough]];
    case SegmentEventKind::kMap:
      state.stats.reserved.Add(range.bytes);
      return;
    case SegmentEventKind::kFree:
      state.stats.segments.Subtract(1);
      [[fallthrough]];
    case SegmentEventKind::kUnmap:
      state.stats.reserved.Subtract(range.bytes);
      return;
  }
}

BlockHandle AddSegment(AllocatorState& state, std::size_t pool, Bytes bytes, BlockState first) {
  const auto pool_id = static_cast<std::uint16_t>(pool);
  const std::uint32_t segment = state.segments.Add(bytes, pool_id);
  Block block;
  block.address = state.segments[segment].address;
  block.bytes = bytes;
  block.segment = segment;
  block.pool = pool_id;
  block.state = first;
  const BlockHandle handle = state.blocks.Add(block);
  state.segments[segment].first = handle;
  return handle;
}

void RemoveSegment(AllocatorState& state, BlockHandle block) {
  state.segments.Remove(state.blocks[block].segment);
  state.blocks.Remove(block);
}

}  // namespace dcsim
