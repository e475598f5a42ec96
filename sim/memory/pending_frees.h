#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/base/error.h"
#include "sim/memory/block_table.h"

namespace dcsim {

/// Where PyTorch has a stream in the hash table of its event queues, through which it goes in
/// ascending order of this value.
///
///   stream   of the first GPU; 0 is the default stream, k > 0 the k-th taken from the pool
///
/// Streams that share a bucket of the table come in order of insertion instead; the first four
/// never share one.
/// Source: PyTorch 2.11, c10/core/Stream.h (hash), c10/util/flat_hash_map.h
/// (fibonacci_hash_policy), c10/cuda/CUDAStream.cpp (ids).
constexpr std::uint64_t HashPosition(std::uint64_t stream) {
  constexpr std::uint64_t kFibonacci = 11400714819323198485U;  // 2^64 / golden ratio
  constexpr std::uint64_t kFirstGpu = std::uint64_t{1} << 56;
  const std::uint64_t id = stream == 0 ? 0 : (stream - 1) * 32 + 3;
  return kFibonacci * (kFirstGpu | id);
}

/// Events recorded when blocks were freed that other streams had used, oldest first, for each
/// stream a queue of its own: an event that has not passed holds back those behind it.
///
/// The queues are in the order in which PyTorch looks at them. It shows only in the peak of
/// inactive_split: which block joins its neighbours first.
class PendingFrees {
 public:
  PendingFrees() { queue_of_stream_.fill(kNoQueue); }

  /// True if no event is waited for.
  bool empty() const { return count_ == 0; }

  /// Records that `block` may be reused only once `task_count` tasks of `stream` are finished.
  void Push(std::size_t stream, std::uint64_t task_count, BlockHandle block) {
    if (queue_of_stream_[stream] == kNoQueue) {
      AddQueue(stream);
    }
    queues_[queue_of_stream_[stream]].events.push_back({task_count, block});
    ++count_;
    ++pushed_;
  }

  /// Adds to `state` what decides which events pass when, `completed` being as in TakePassed: by
  /// queue the tasks that each still waits for, and its block's place by `place_of`.
  template <typename PlaceOf>
  void AddState(std::span<const std::uint64_t> completed,
                PlaceOf place_of,
                std::vector<std::int64_t>& state) const {
    for (const Queue& queue : queues_) {
      state.push_back(static_cast<std::int64_t>(queue.stream));
      for (std::size_t i = queue.head; i < queue.events.size(); ++i) {
        const std::uint64_t until = queue.events[i].task_count;
        const std::uint64_t finished = completed[queue.stream];
        state.push_back(static_cast<std::int64_t>(until > finished ? until - finished : 0));
        state.push_back(place_of(queue.events[i].block));
      }
    }
  }

  /// By stream so many tasks more have ended than were seen to, which were never waited for.
  void LeaveOut(std::span<const std::uint64_t> tasks) {
    for (Queue& queue : queues_) {
      for (Event& event : queue.events) {
        event.task_count += tasks[queue.stream];
      }
    }
  }

  /// Events so far, and those of them that are not waited for any more.
  std::uint64_t pushed() const { return pushed_; }
  std::uint64_t taken() const { return pushed_ - count_; }

  /// Takes the events that have passed.
  ///
  ///   completed   [streams] tasks of each stream that are finished; must cover streams with events
  ///   on_passed   called with the block of each event; must not push events
  template <typename OnPassed>
  void TakePassed(std::span<const std::uint64_t> completed, OnPassed on_passed) {
    for (Queue& queue : queues_) {
      DCSIM_CHECK(queue.stream < completed.size()) << "stream " << queue.stream << " has events";
      const std::uint64_t finished = completed[queue.stream];
      const std::span<const Event> events = queue.events;
      std::size_t head = queue.head;
      for (; head < events.size() && events[head].task_count <= finished; ++head) {
        on_passed(events[head].block);
      }
      count_ -= head - queue.head;
      queue.head = head;
      if (head == events.size() || head >= kCompactAt) {
        queue.DropPassed();
      }
    }
  }

 private:
  struct Event {
    std::uint64_t task_count;
    BlockHandle block;
  };
  struct Queue {
    std::vector<Event> events;
    std::size_t head = 0;  // first event still waited for
    std::size_t stream = 0;

    void DropPassed() {
      events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(head));
      head = 0;
    }
  };

  static constexpr std::size_t kCompactAt = 256;  // passed events kept before a queue is moved up
  static constexpr std::uint8_t kNoQueue = kMaxStreams;

  void AddQueue(std::size_t stream) {
    const auto behind = std::find_if(queues_.begin(), queues_.end(), [stream](const Queue& queue) {
      return HashPosition(queue.stream) > HashPosition(stream);
    });
    queues_.insert(behind, Queue{.events = {}, .head = 0, .stream = stream});
    for (std::size_t queue = 0; queue < queues_.size(); ++queue) {
      queue_of_stream_[queues_[queue].stream] = static_cast<std::uint8_t>(queue);
    }
  }

  std::vector<Queue> queues_;
  std::array<std::uint8_t, kMaxStreams> queue_of_stream_{};
  std::size_t count_ = 0;
  std::uint64_t pushed_ = 0;
};

}  // namespace dcsim
