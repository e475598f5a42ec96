#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/base/ids.h"
#include "model/base/units.h"
#include "sim/memory/allocator_call.h"
#include "sim/memory/allocator_config.h"
#include "sim/memory/allocator_state.h"
#include "sim/memory/allocator_stats.h"
#include "sim/memory/block_table.h"
#include "sim/memory/segment_table.h"

namespace dcsim {

enum class AllocationStatus : std::uint8_t {
  kOk,
  kNeedsSynchronize,  ///< wait for all streams, then call AllocateAfterSynchronize
  kOutOfMemory,
};

struct Allocation {
  AllocationStatus status = AllocationStatus::kOk;
  BlockHandle block = kNoBlock;  // kNoBlock unless status is kOk
};

/// One block as `torch.cuda.memory_snapshot` shows it.
struct BlockView {
  Bytes offset;  // from the address of its segment
  Bytes bytes;
  Bytes requested_bytes;  // 0 for free blocks
  BlockState state = BlockState::kFree;

  bool operator==(const BlockView&) const = default;
};

/// One cudaMalloc'd segment, or one contiguous mapped range of an expandable segment.
struct SegmentView {
  std::uint64_t address = 0;
  Bytes bytes;
  StreamId stream;
  bool is_small = false;
  std::vector<BlockView> blocks;  // by address, tiling the segment

  bool operator==(const SegmentView&) const = default;
};

/// Replays PyTorch 2.11's CUDA caching allocator for one GPU: the same requests in the same order,
/// with events passing at the same points, give the same blocks, statistics and segments.
///
/// Life of a block: Allocate hands it out. RecordStream notes streams other than its own that use
/// it. Free returns it at once if there are none; otherwise it waits for an event on each of them,
/// and an Allocate after all have passed returns it to the cache.
///
/// An event on a stream is the number of tasks put on the stream before it; it has passed when
/// that many are finished. Memory never moves between streams, nor between requests of at most
/// 1 MiB and larger ones, except through the driver.
///
/// Copies are independent: a copy is a snapshot to continue from.
class CachingAllocator {
 public:
  /// An allocator that has nothing from the driver yet. `config` must satisfy CheckConfig;
  /// `placement` chooses the addresses of segments when those of a real run are to be repeated.
  explicit CachingAllocator(const AllocatorConfig& config, SegmentPlacement placement = {});

  /// Hands out a block, from the cache if one fits, else from a new segment or newly mapped pages.
  ///
  ///   requested   > 0; PyTorch serves empty tensors without its allocator
  ///   stream      the stream current at the allocation, index < kMaxStreams
  ///   completed   [streams] tasks finished so far, of each stream; streams with pending events
  ///               must be covered. Blocks of which all events have passed are cached first.
  ///
  /// Returns kOk and the block, or kNeedsSynchronize: the driver refused, and PyTorch now waits on
  /// the host for the pending events, frees its cache and tries once more. In that case nothing has
  /// been handed out, and AllocateAfterSynchronize must follow before any other call.
  Allocation Allocate(Bytes requested, StreamId stream, std::span<const std::uint64_t> completed);

  /// Second half of an Allocate that returned kNeedsSynchronize, for the same request: treats all
  /// events as passed, gives cached memory back to the driver, asks the driver again. Counts a
  /// retry. Returns kOk and the block or kOutOfMemory, which leaves the cache empty but intact.
  Allocation AllocateAfterSynchronize(Bytes requested, StreamId stream);

  /// Notes that `stream` uses an allocated block. Of no effect for the block's own stream.
  void RecordStream(BlockHandle block, StreamId stream);

  /// Frees an allocated block. The handle must not be used afterwards.
  ///
  ///   issued   [streams] tasks put on each stream so far; streams given to RecordStream for this
  ///            block must be covered
  void Free(BlockHandle block, std::span<const std::uint64_t> issued);

  /// torch.cuda.empty_cache: the caller has waited for all streams; treats all events as passed and
  /// gives cached memory back to the driver.
  void EmptyCache();

  /// torch.cuda.reset_peak_memory_stats.
  void ResetPeaks() { state_.stats.ResetPeaks(); }

  const AllocatorStats& stats() const { return state_.stats; }
  const AllocatorConfig& config() const { return state_.config; }

  /// Size of a block: what it adds to `allocated`, at least what was requested.
  Bytes BlockBytes(BlockHandle block) const { return state_.blocks[block].bytes; }
  std::uint64_t BlockAddress(BlockHandle block) const { return state_.blocks[block].address; }

  /// Events recorded behind freed blocks that other streams used, and those of them that have
  /// passed and been seen.
  std::uint64_t recorded_events() const { return state_.pending.pushed(); }
  std::uint64_t taken_back() const { return state_.pending.taken(); }

  /// Every exchange of memory with the driver since construction, in order.
  std::span<const SegmentEvent> segment_events() const { return state_.events; }

  /// Adds to `state` what decides how equal requests go on from here, `completed` being as in
  /// Allocate: the exchanges with the driver, where everything lies, and who waits for which event.
  void AddState(std::span<const std::uint64_t> completed, std::vector<std::int64_t>& state) const;

  /// So many tasks of each stream are left out, which issued and completed include from now on.
  void LeaveOut(std::span<const std::uint64_t> tasks) { state_.pending.LeaveOut(tasks); }

  /// From now on every action is logged, in PyTorch's order.
  void KeepLog() { state_.log.emplace(); }
  bool keeps_log() const { return state_.log.has_value(); }
  /// What was logged since it was last taken. A log must be kept.
  std::vector<AllocatorCall> TakeLog();

  /// The memory that the driver handed out, by address.
  std::vector<SegmentView> Segments() const;

 private:
  struct Request {
    Bytes requested;
    Bytes rounded;
    std::size_t pool;
  };

  Request MakeRequest(Bytes requested, StreamId stream);
  void ReturnPassed(std::span<const std::uint64_t> completed);
  void ReturnAllPending();
  FreeBlocks::Position FindCached(const Request& request);
  FreeBlocks::Position GetFromDriver(const Request& request);
  bool IsSplitOff(const Request& request, Bytes remaining) const;
  Allocation HandOut(const Request& request, FreeBlocks::Position position);
  void Cache(BlockHandle block);

  AllocatorState state_;
};

}  // namespace dcsim
