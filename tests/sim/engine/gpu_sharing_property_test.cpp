// What holds however tasks share the GPU: random ones of every class on all streams, on 400 GPUs
// whose laws of contention are drawn, too.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/engine/gpu_sharing.h"
#include "sim/search/random.h"
#include "tests/sim/test_cluster.h"

namespace dcsim {
namespace {

constexpr std::uint64_t kSeeds = 400;
constexpr std::size_t kTasks = 24;  // of each stream

/// One of compute's, or of a side stream. Sometimes a thousand times as long as others.
GpuTask RandomTask(bool compute, Random& random) {
  const auto below = [&random](int count) {
    return static_cast<std::int64_t>(random.Below(static_cast<std::uint64_t>(count)));
  };
  constexpr std::array kOfCompute = {DeviceUse::kMatmul, DeviceUse::kAttention,
                                     DeviceUse::kStreaming};
  constexpr std::array kOfSide = {DeviceUse::kSideStreaming, DeviceUse::kCollective,
                                  DeviceUse::kCopyEngine};
  const auto use = static_cast<std::size_t>(below(3));
  GpuTask task;
  task.use = compute ? kOfCompute[use] : kOfSide[use];
  task.device = (1 + below(2'000'000)) * (below(8) == 0 ? 1'000 : 1);
  task.launches = static_cast<std::int32_t>(below(2) == 0 ? 1 : 1 + below(40));
  task.demand = Share::FromPermille(below(1'001));
  if (compute) {
    task.room = below(static_cast<int>(task.device) + 1);
    task.last_wave = below(static_cast<int>(task.device) + 1);
    task.last_free = static_cast<std::int32_t>(below(132));
    task.memory_load = Share::FromPermille(below(1'001));
    if (below(2) == 0) {
      task.beside_collective = Rate::FromPermille(below(1'000));
    }
  } else {
    task.start = below(3) * (1 + below(40'000));
    task.beside_memory = Longer::FromPermille(below(2) * below(3'000));
    if (task.use == DeviceUse::kCopyEngine && below(2) == 0) {
      task.beside_host_copy = Rate::FromPermille(below(1'000));
      task.to_host = below(2) == 0;
    } else if (task.use == DeviceUse::kCopyEngine) {
      task.own_shard = below(static_cast<int>(task.device) + 1);
    }
  }
  return task;
}

using Queues = std::array<std::vector<GpuTask>, kStreamCount>;

Queues RandomQueues(std::uint64_t seed) {
  Random random(seed);
  Queues queues;
  for (std::size_t stream = 0; stream < kStreamCount; ++stream) {
    for (std::size_t i = 0; i < kTasks; ++i) {
      queues[stream].push_back(RandomTask(stream == 0, random));
    }
  }
  return queues;
}

/// What became of a task.
struct Span {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t work = 0;  // that was done, in Rate's amounts

  bool operator==(const Span& other) const { return start == other.start && end == other.end; }
};

/// Each stream runs its queue without a pause.
class Traffic {
 public:
  Traffic(const GpuSharing::Options& options, const Queues& queues)
      : queues_(queues),
        gpu_(options) {}

  std::array<std::vector<Span>, kStreamCount> Run() {
    for (std::size_t stream = 0; stream < kStreamCount; ++stream) {
      StartNext(stream);
    }
    gpu_.Settle(now_);
    for (std::size_t stream = First(); gpu_.event(stream) != GpuSharing::kNever; stream = First()) {
      Pass(gpu_.event(stream));
      if (gpu_.Advance(stream, now_)) {
        spans_[stream].back().end = now_;
        StartNext(stream);
      }
      gpu_.Settle(now_);
    }
    return spans_;
  }

 private:
  std::size_t First() const {
    std::size_t first = 0;
    for (std::size_t stream = 1; stream < kStreamCount; ++stream) {
      first = gpu_.event(stream) < gpu_.event(first) ? stream : first;
    }
    return first;
  }

  void Pass(std::int64_t until) {
    for (std::size_t stream = 0; stream < kStreamCount; ++stream) {
      if (const auto rate = gpu_.rate(stream)) {
        spans_[stream].back().work += rate->WorkIn(until - now_);
      }
    }
    now_ = until;
  }

  void StartNext(std::size_t stream) {
    const std::size_t next = spans_[stream].size();
    if (next < queues_[stream].size()) {
      spans_[stream].push_back({now_, -1, 0});
      gpu_.Start(stream, queues_[stream][next], next > 0, next, now_);
    }
  }

  const Queues& queues_;
  GpuSharing gpu_;
  std::int64_t now_ = 0;
  std::array<std::vector<Span>, kStreamCount> spans_;
};

GpuSharing::Options RandomOptions(std::uint64_t seed) {
  const Cluster cluster = CrowdedCluster(seed);
  GpuSharing::Options options;
  options.contention = cluster.gpu.contention;
  options.ranks = 2;
  options.collective_gap = cluster.gpu.gaps.collective.ns();
  options.queued_gap = cluster.gpu.gaps.queued.value_or(Duration()).ns();
  return options;
}

/// Calls `check` with the queues and what they came to; stops at the first seed that fails.
template <typename Check>
void ForEachSeed(Check check) {
  for (std::uint64_t seed = 0; seed < kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const GpuSharing::Options options = RandomOptions(seed);
    const Queues queues = RandomQueues(seed);
    check(options, queues, Traffic(options, queues).Run());
  }
}

// An end is a whole nanosecond, so up to one nanosecond's work more is done; twice where the own
// shard is copied last.
TEST(GpuSharingPropertyTest, WorkIsConserved) {
  ForEachSeed([](const auto&, const Queues& queues, const auto& spans) {
    for (std::size_t stream = 0; stream < kStreamCount; ++stream) {
      ASSERT_EQ(spans[stream].size(), kTasks) << "stream " << stream;
      for (std::size_t i = 0; i < kTasks; ++i) {
        const std::int64_t work = queues[stream][i].device * Rate::kWorkOfNs;
        EXPECT_GE(spans[stream][i].work, work) << "stream " << stream << ", task " << i;
        EXPECT_LT(spans[stream][i].work, work + 2 * Rate::kWorkOfNs)
            << "stream " << stream << ", task " << i;
      }
    }
  });
}

TEST(GpuSharingPropertyTest, NoTaskTakesLessThanAlone) {
  ForEachSeed([](const auto&, const Queues& queues, const auto& spans) {
    for (std::size_t stream = 0; stream < kStreamCount; ++stream) {
      for (std::size_t i = 0; i < spans[stream].size(); ++i) {
        EXPECT_GE(spans[stream][i].end - spans[stream][i].start, queues[stream][i].device)
            << "stream " << stream << ", task " << i;
      }
    }
  });
}

// Side streams have one priority and no names. What is ready in the same nanosecond goes by stream,
// so times are drawn wide enough that nothing is.
TEST(GpuSharingPropertyTest, SideStreamsMayBeSwapped) {
  ForEachSeed([](const GpuSharing::Options& options, Queues queues, auto spans) {
    std::rotate(queues.begin() + 1, queues.begin() + 2, queues.end());
    std::rotate(spans.begin() + 1, spans.begin() + 2, spans.end());
    const auto rotated = Traffic(options, queues).Run();
    for (std::size_t stream = 0; stream < kStreamCount; ++stream) {
      EXPECT_TRUE(rotated[stream] == spans[stream]) << "stream " << stream;
    }
  });
}

}  // namespace
}  // namespace dcsim
