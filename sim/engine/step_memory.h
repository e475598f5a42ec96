#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "model/ir/schedule.h"
#include "sim/memory/caching_allocator.h"

namespace dcsim {

/// How far the tasks of every stream have come, over all steps: what allocator events compare.
struct StreamProgress {
  std::array<std::uint64_t, kStreamCount> issued{};
  std::array<std::uint64_t, kStreamCount> ended{};
};

/// What the allocator did, and for an allocation whose it is.
struct LoggedCall {
  AllocatorCall call;
  BufferId buffer;  // of kAlloc; else None()
};

/// The buffers of a schedule in a replayed allocator: makes a task's allocator calls, and counts
/// the bytes that are alive as requested.
class StepMemory {
 public:
  StepMemory(const Schedule& schedule, const AllocatorConfig& config);

  enum class Status : std::uint8_t { kDone, kNeedsSynchronize, kOutOfMemory };

  /// Allocates the residents that are there before the first step. Out of memory is possible.
  Status AllocateResidents();

  /// Makes all allocator calls of a task. On kNeedsSynchronize the host must wait until every
  /// issued task has ended, then call Resume for the rest.
  Status Run(TaskId task, std::uint32_t step, const StreamProgress& progress);
  Status Resume(const StreamProgress& progress);

  /// As of the allocator; a log must be kept before residents are allocated, or not at all.
  void KeepLog() { allocator_.KeepLog(); }
  bool keeps_log() const { return allocator_.keeps_log(); }
  std::vector<LoggedCall> TakeLog();

  /// Whose request failed or waits.
  BufferId refused() const { return refused_; }
  /// The buffers that live() counts, ascending; one of each of two steps: twice.
  std::vector<BufferId> Alive() const;
  Bytes live() const { return live_; }
  Bytes peak_live() const { return peak_live_; }
  void ResetPeaks();
  const AllocatorStats& stats() const { return allocator_.stats(); }
  /// cudaMalloc, cudaFree and mapping calls so far.
  std::size_t driver_calls() const { return allocator_.segment_events().size(); }
  /// As of the allocator.
  std::uint64_t recorded_events() const { return allocator_.recorded_events(); }
  std::uint64_t taken_back() const { return allocator_.taken_back(); }
  /// Adds to `state` what decides how equal tasks go on from here: the allocator's state, and of
  /// each buffer that is alive its name, by `name_of`, and its block.
  template <typename NameOf>
  void AddState(const StreamProgress& progress,
                NameOf name_of,
                std::vector<std::int64_t>& state) const {
    allocator_.AddState(progress.ended, state);
    state.push_back(static_cast<std::int64_t>(rest_.size()));
    const auto add = [&](BufferId buffer, BlockHandle block) {
      if (block != kNoBlock) {
        state.push_back(name_of(buffer));
        state.push_back(static_cast<std::int64_t>(allocator_.BlockAddress(block)));
      }
    };
    // Of a carried buffer the last step's block alone is alive at a step's end, in that step's
    // slot.
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (!schedule_.buffers()[i].carried) {
        add(BufferId(i), blocks_[i]);
      }
    }
    for (const auto& [buffer, odd_block] : odd_blocks_) {
      add(buffer, step_ % 2 == 0 ? blocks_[buffer.index()] : odd_block);
      add(buffer, step_ % 2 == 0 ? odd_block : blocks_[buffer.index()]);
    }
  }
  /// So many tasks of each stream are left out, up to `task`, whose calls are now being made. Each
  /// buffer is from now on what `later` says of it.
  template <typename Later>
  void LeaveOut(std::span<const std::uint64_t> tasks, TaskId task, Later later) {
    allocator_.LeaveOut(tasks);
    std::vector<BlockHandle> blocks(blocks_.size(), kNoBlock);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i] != kNoBlock) {
        blocks[later(BufferId(i)).index()] = blocks_[i];
      }
    }
    blocks_ = std::move(blocks);
    if (!rest_.empty()) {
      rest_ = schedule_.memory(task).last(rest_.size());
    }
  }
  /// Bytes given back to the driver by calls `first` and later.
  Bytes given_back_since(std::size_t first) const;

 private:
  /// A task's allocator calls in the first step, in which residents are allocated.
  struct FirstCalls {
    TaskId task;
    std::vector<MemoryStep> memory;
  };

  void AddFirstCall(BufferId resident);
  Status Continue(const StreamProgress& progress);
  Status Allocate(BufferId id, const StreamProgress& progress);
  void Free(BufferId id, const StreamProgress& progress);
  void Adopt(BufferId id, BlockHandle block);
  BlockHandle& Slot(BufferId id, std::uint32_t step);

  const Schedule& schedule_;
  CachingAllocator allocator_;
  std::vector<BlockHandle> blocks_;  // by buffer
  /// Of buffers that are freed in the step after: a second block, so that one of each of two
  /// successive steps can be alive. Even steps use blocks_.
  std::vector<std::pair<BufferId, BlockHandle>> odd_blocks_;
  std::vector<FirstCalls> first_calls_;
  std::vector<BufferId> logged_;  // allocated since the log was taken, where one is kept
  std::span<const MemoryStep> rest_;
  std::uint32_t step_ = 0;
  Bytes live_;
  Bytes peak_live_;
  BufferId refused_;
};

}  // namespace dcsim
