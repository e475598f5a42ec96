#include "sim/memory/caching_allocator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "model/base/error.h"
#include "sim/memory/cache_release.h"
#include "sim/memory/expandable_segments.h"

namespace dcsim {
namespace {

// Size that a cached block could grow to by mapping the unmapped range behind it.
Bytes ExpandableSize(const BlockTable& blocks, BlockHandle handle) {
  const Block& block = blocks[handle];
  if (block.next == kNoBlock || blocks[block.next].state != BlockState::kUnmapped) {
    return block.bytes;
  }
  return block.bytes + blocks[block.next].bytes;
}

// Of the blocks that fit: one at the end of the mapped range counts with all it could still grow
// to, so that holes are filled first.
FreeBlocks::Position PreferHole(const BlockTable& blocks,
                                const FreeBlocks& free,
                                FreeBlocks::Position position) {
  Bytes bytes = ExpandableSize(blocks, free.at(position));
  while (true) {
    const FreeBlocks::Position next = free.Next(position);
    if (next.is_end() || ExpandableSize(blocks, free.at(next)) >= bytes) {
      return position;
    }
    position = next;
    bytes = ExpandableSize(blocks, free.at(position));
  }
}

bool IsMapped(BlockState state) {
  return state != BlockState::kUnmapped && state != BlockState::kUnused;
}

SegmentView EmptyView(const Block& first) {
  return {.address = first.address,
          .bytes = Bytes(0),
          .stream = StreamOfPool(first.pool),
          .is_small = IsSmallPool(first.pool),
          .blocks = {}};
}

void AppendBlock(SegmentView& view, const Block& block) {
  const bool is_free = block.state == BlockState::kFree;
  view.blocks.push_back({.offset = view.bytes,
                         .bytes = block.bytes,
                         .requested_bytes = is_free ? Bytes(0) : block.requested_bytes,
                         .state = block.state});
  view.bytes += block.bytes;
}

}  // namespace

CachingAllocator::CachingAllocator(const AllocatorConfig& config, SegmentPlacement placement)
    : state_(config,
             placement                           ? std::move(placement)
             : !config.recorded_segments.empty() ? RecordedPlacement(config.recorded_segments)
                                                 : ShuffledPlacement(config.segment_order)) {
  CheckConfig(config);
}

CachingAllocator::Request CachingAllocator::MakeRequest(Bytes requested, StreamId stream) {
  DCSIM_CHECK(requested > Bytes(0)) << "empty tensors do not reach the allocator";
  const Bytes rounded = RoundedSize(state_.config, requested);
  const std::size_t pool = PoolIndex(stream, rounded <= kSmallRequest);
  if (pool >= state_.pools.size()) {
    DCSIM_CHECK(stream.index() < kMaxStreams) << "stream " << stream.index();
    state_.pools.resize(2 * stream.index() + 2);
  }
  return {.requested = requested, .rounded = rounded, .pool = pool};
}

Allocation CachingAllocator::Allocate(Bytes requested,
                                      StreamId stream,
                                      std::span<const std::uint64_t> completed) {
  if (!state_.pending.empty()) {
    ReturnPassed(completed);
  }
  const Request request = MakeRequest(requested, stream);
  FreeBlocks::Position position = FindCached(request);
  if (position.is_end()) {
    if (CollectsGarbage(state_.config)) {
      CollectGarbage(state_);
    }
    position = GetFromDriver(request);
  }
  if (position.is_end() && ReleaseOversizeBlocks(state_, request.pool, request.rounded)) {
    position = GetFromDriver(request);
  }
  if (position.is_end()) {
    return {.status = AllocationStatus::kNeedsSynchronize, .block = kNoBlock};
  }
  return HandOut(request, position);
}

Allocation CachingAllocator::AllocateAfterSynchronize(Bytes requested, StreamId stream) {
  EmptyCache();
  ++state_.stats.retries;
  const Request request = MakeRequest(requested, stream);
  const FreeBlocks::Position position = GetFromDriver(request);
  if (position.is_end()) {
    ++state_.stats.ooms;
    const Bytes left = state_.config.capacity - state_.stats.reserved.current;
    Block refused;
    refused.address = static_cast<std::uint64_t>(left.count());
    refused.bytes = request.rounded;
    refused.requested_bytes = requested;
    refused.pool = static_cast<std::uint16_t>(request.pool);
    LogBlock(state_, AllocatorAction::kOutOfMemory, refused);
    return {.status = AllocationStatus::kOutOfMemory, .block = kNoBlock};
  }
  return HandOut(request, position);
}

// The cached block that serves the request.
FreeBlocks::Position CachingAllocator::FindCached(const Request& request) {
  const AllocatorConfig& config = state_.config;
  if (CollectsGarbage(config)) {
    ++state_.searches[request.pool % 2];
  }
  const FreeBlocks& free = state_.pools[request.pool].free;
  FreeBlocks::Position position = free.FindBestFit(request.rounded);
  if (position.is_end()) {
    return position;
  }
  if (config.expandable_segments) {
    position = PreferHole(state_.blocks, free, position);
  }
  const Bytes bytes = state_.blocks[free.at(position)].bytes;
  const bool is_refused = request.rounded < config.max_split_size
                              ? bytes >= config.max_split_size
                              : bytes >= request.rounded + config.max_non_split_rounding;
  return is_refused ? FreeBlocks::Position() : position;
}

// A new block, in its free list, that serves the request.
FreeBlocks::Position CachingAllocator::GetFromDriver(const Request& request) {
  const Bytes bytes = SegmentSize(state_.config, request.rounded);
  const std::optional<Bytes> limit = state_.config.memory_limit;
  if (limit.has_value() && state_.stats.reserved.current + bytes > *limit) {
    return {};
  }
  BlockHandle block = kNoBlock;
  if (state_.config.expandable_segments) {
    block = MapRoom(state_, request.pool, request.rounded);
  } else if (DriverHas(state_, bytes)) {
    block = AddSegment(state_, request.pool, bytes, BlockState::kFree);
    RecordSegmentEvent(state_, SegmentEventKind::kAlloc, state_.blocks[block]);
    CacheBlock(state_, block);
  }
  return block == kNoBlock ? FreeBlocks::Position()
                           : state_.pools[request.pool].free.Find(state_.blocks, block);
}

// True if what remains of a block behind the request is worth a block of its own.
bool CachingAllocator::IsSplitOff(const Request& request, Bytes remaining) const {
  if (state_.config.expandable_segments || IsSmallPool(request.pool)) {
    return remaining >= kMinBlock;
  }
  return request.rounded < state_.config.max_split_size && remaining > kSmallRequest;
}

Allocation CachingAllocator::HandOut(const Request& request, FreeBlocks::Position position) {
  FreeBlocks& free = state_.pools[request.pool].free;
  AllocatorStats& stats = state_.stats;
  const BlockHandle handle = free.at(position);
  const bool was_split = state_.blocks[handle].IsSplit();
  const Bytes whole = state_.blocks[handle].bytes;
  const Bytes remaining = whole - request.rounded;
  Bytes inactive_change = was_split ? Bytes(0) - whole : Bytes(0);
  free.RemoveAt(position);
  if (IsSplitOff(request, remaining)) {
    CacheBlock(state_, CutAfter(state_, handle, request.rounded));
    inactive_change += remaining;
  }
  if (!state_.config.expandable_segments) {
    stats.inactive_split.Add(inactive_change);
  }
  Block& block = state_.blocks[handle];
  block.state = BlockState::kAllocated;
  block.requested_bytes = request.requested;
  stats.allocated.Add(block.bytes);
  stats.active.Add(block.bytes);
  stats.requested.Add(request.requested);
  LogBlock(state_, AllocatorAction::kAlloc, block);
  return {.status = AllocationStatus::kOk, .block = handle};
}

void CachingAllocator::RecordStream(BlockHandle block, StreamId stream) {
  DCSIM_CHECK(stream.index() < kMaxStreams) << "stream " << stream.index();
  Block& used = state_.blocks[block];
  DCSIM_CHECK(used.state == BlockState::kAllocated);
  if (stream != StreamOfPool(used.pool)) {
    used.users |= std::uint64_t{1} << stream.index();
  }
}

void CachingAllocator::Free(BlockHandle block, std::span<const std::uint64_t> issued) {
  Block& freed = state_.blocks[block];
  DCSIM_CHECK(freed.state == BlockState::kAllocated);
  state_.stats.allocated.Subtract(freed.bytes);
  LogBlock(state_, AllocatorAction::kFreeRequested, freed);
  if (freed.users == 0) {
    Cache(block);
    return;
  }
  freed.state = BlockState::kAwaitingEvents;
  for (std::uint64_t users = freed.users; users != 0; users &= users - 1) {
    const auto stream = static_cast<std::size_t>(std::countr_zero(users));
    DCSIM_CHECK(stream < issued.size()) << "stream " << stream;
    state_.pending.Push(stream, issued[stream], block);
    ++freed.pending_events;
  }
  freed.users = 0;
}

void CachingAllocator::ReturnPassed(std::span<const std::uint64_t> completed) {
  state_.pending.TakePassed(completed, [this](BlockHandle block) {
    if (--state_.blocks[block].pending_events == 0) {
      Cache(block);
    }
  });
}

void CachingAllocator::ReturnAllPending() {
  std::array<std::uint64_t, kMaxStreams> all{};
  all.fill(std::numeric_limits<std::uint64_t>::max());
  ReturnPassed(all);
}

// Makes a block that nobody uses available again, joined with the free blocks around it.
void CachingAllocator::Cache(BlockHandle block) {
  BlockTable& blocks = state_.blocks;
  FreeBlocks& free = state_.pools[blocks[block].pool].free;
  state_.stats.active.Subtract(blocks[block].bytes);
  LogBlock(state_, AllocatorAction::kFreeCompleted, blocks[block]);
  state_.stats.requested.Subtract(blocks[block].requested_bytes);
  blocks[block].state = BlockState::kFree;
  Bytes inactive_change;
  const BlockHandle next = blocks[block].next;
  if (next != kNoBlock && blocks[next].state == BlockState::kFree) {
    free.RemoveAt(free.Find(blocks, next));
    inactive_change -= blocks[next].bytes;
    blocks.JoinToPrevious(next);
  }
  const BlockHandle previous = blocks[block].previous;
  if (previous != kNoBlock && blocks[previous].state == BlockState::kFree) {
    free.RemoveAt(free.Find(blocks, previous));
    inactive_change -= blocks[previous].bytes;
    blocks.JoinToPrevious(block);
    block = previous;
  }
  CacheBlock(state_, block);
  if (!state_.config.expandable_segments) {
    inactive_change += blocks[block].IsSplit() ? blocks[block].bytes : Bytes(0);
    state_.stats.inactive_split.Add(inactive_change);
  }
}

void CachingAllocator::AddState(std::span<const std::uint64_t> completed,
                                std::vector<std::int64_t>& state) const {
  const auto add = [&state](auto number) { state.push_back(static_cast<std::int64_t>(number)); };
  add(state_.events.size());
  add(state_.searches[0] + state_.searches[1]);
  for (const Segment& segment : state_.segments.all()) {
    add(segment.address);
    for (BlockHandle handle = segment.first; handle != kNoBlock;) {
      const Block& block = state_.blocks[handle];
      const bool is_free = block.state == BlockState::kFree;
      add(block.bytes.count());
      add(is_free ? 0 : block.requested_bytes.count());
      add(block.users);
      add(block.state);
      handle = block.next;
    }
  }
  state_.pending.AddState(
      completed,
      [this](BlockHandle block) { return static_cast<std::int64_t>(BlockAddress(block)); }, state);
}

void CachingAllocator::EmptyCache() {
  ReturnAllPending();
  ReleaseCachedBlocks(state_);
}

std::vector<AllocatorCall> CachingAllocator::TakeLog() {
  return std::exchange(*state_.log, {});
}

std::vector<SegmentView> CachingAllocator::Segments() const {
  std::vector<SegmentView> views;
  for (const Segment& segment : state_.segments.all()) {
    bool is_continued = false;
    for (BlockHandle handle = segment.first; handle != kNoBlock;) {
      const Block& block = state_.blocks[handle];
      if (IsMapped(block.state)) {
        if (!is_continued) {
          views.push_back(EmptyView(block));
        }
        AppendBlock(views.back(), block);
      }
      is_continued = IsMapped(block.state);
      handle = block.next;
    }
  }
  std::sort(views.begin(), views.end(), [](const SegmentView& left, const SegmentView& right) {
    return left.address < right.address;
  });
  return views;
}

}  // namespace dcsim
