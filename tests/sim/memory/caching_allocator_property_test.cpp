// What must hold in every run, on seeded random scripts, with and without expandable segments.

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "sim/memory/caching_allocator.h"
#include "tests/sim/memory/allocator_harness.h"

namespace dcsim {
namespace {

struct PropertyCase {
  std::uint64_t seed;
  bool expandable;
};

AllocatorConfig ConfigOf(const PropertyCase& property_case) {
  AllocatorConfig config;
  config.expandable_segments = property_case.expandable;
  config.capacity = Bytes::GiB(2);
  return config;
}

// A random script: allocations of all sizes on three streams, frees in random order, some after
// record_stream, streams that lag behind.
class RandomScript {
 public:
  explicit RandomScript(const PropertyCase& property_case)
      : harness_(ConfigOf(property_case)),
        random_(property_case.seed) {}

  void Step() {
    const std::size_t stream = Pick(3);
    switch (Pick(8)) {
      case 0:
        ++harness_.issued[stream];
        break;
      case 1:
        harness_.completed[stream] = harness_.issued[stream];
        break;
      case 2:
      case 3:
      case 4:
        Free();
        break;
      default:
        Allocate(stream);
    }
  }

  void FreeAll() {
    while (!live_.empty()) {
      Free();
    }
    harness_.allocator.EmptyCache();
  }

  AllocatorHarness& harness() { return harness_; }
  Bytes ideal_peak() const { return ideal_peak_; }

 private:
  struct Live {
    BlockHandle block;
    Bytes requested;
  };

  std::size_t Pick(std::size_t count) { return random_() % count; }

  void Allocate(std::size_t stream) {
    const auto bytes = static_cast<std::int64_t>(random_() % (std::uint64_t{1} << Pick(29)) + 1);
    const BlockHandle block = harness_.AllocateOrRetry(Bytes(bytes), stream);
    if (block == kNoBlock) {
      return;
    }
    if (Pick(4) == 0) {
      harness_.allocator.RecordStream(block, StreamId(Pick(3)));
    }
    live_.push_back({block, Bytes(bytes)});
    ideal_ += Bytes(bytes);
    ideal_peak_ = std::max(ideal_peak_, ideal_);
  }

  void Free() {
    if (live_.empty()) {
      return;
    }
    std::swap(live_[Pick(live_.size())], live_.back());
    harness_.Free(live_.back().block);
    ideal_ -= live_.back().requested;
    live_.pop_back();
  }

  AllocatorHarness harness_;
  std::mt19937_64 random_;
  std::vector<Live> live_;
  Bytes ideal_;
  Bytes ideal_peak_;
};

class AllocatorPropertyTest : public testing::TestWithParam<PropertyCase> {};

// Blocks tile their segments, segments do not overlap, and no two free blocks are neighbours.
void ExpectSoundSegments(const CachingAllocator& allocator) {
  std::uint64_t end = 0;
  Bytes reserved;
  Bytes active;
  for (const SegmentView& segment : allocator.Segments()) {
    ASSERT_GE(segment.address, end);
    end = segment.address + static_cast<std::uint64_t>(segment.bytes.count());
    reserved += segment.bytes;
    bool was_free = false;
    for (const BlockView& block : segment.blocks) {
      const bool is_free = block.state == BlockState::kFree;
      ASSERT_FALSE(is_free && was_free);
      was_free = is_free;
      active += is_free ? Bytes(0) : block.bytes;
    }
  }
  ASSERT_EQ(reserved, allocator.stats().reserved.current);
  ASSERT_EQ(active, allocator.stats().active.current);
}

TEST_P(AllocatorPropertyTest, SegmentsStaySound) {
  RandomScript script(GetParam());
  for (int step = 0; step < 2000; ++step) {
    script.Step();
    ASSERT_NO_FATAL_FAILURE(ExpectSoundSegments(script.harness().allocator)) << "step " << step;
  }
}

TEST_P(AllocatorPropertyTest, StatisticsAreOrdered) {
  RandomScript script(GetParam());
  const AllocatorStats& stats = script.harness().allocator.stats();
  for (int step = 0; step < 2000; ++step) {
    script.Step();
    ASSERT_LE(Bytes(0), stats.allocated.current);
    ASSERT_LE(stats.allocated.current, stats.active.current);
    ASSERT_LE(stats.active.current, stats.reserved.current);
    ASSERT_LE(stats.requested.current, stats.active.current);
    ASSERT_LE(stats.reserved.current, Bytes::GiB(2));
  }
  EXPECT_LE(script.ideal_peak(), stats.allocated.peak);
}

TEST_P(AllocatorPropertyTest, NothingIsLeftWhenAllIsFreed) {
  RandomScript script(GetParam());
  for (int step = 0; step < 2000; ++step) {
    script.Step();
  }
  script.FreeAll();
  const AllocatorStats& stats = script.harness().allocator.stats();
  EXPECT_EQ(stats.allocated.current, Bytes(0));
  EXPECT_EQ(stats.active.current, Bytes(0));
  EXPECT_EQ(stats.requested.current, Bytes(0));
  EXPECT_EQ(stats.inactive_split.current, Bytes(0));
  EXPECT_EQ(stats.reserved.current, Bytes(0));
  EXPECT_TRUE(script.harness().allocator.Segments().empty());
}

// Given pages and segments sum up to what is taken back.
TEST_P(AllocatorPropertyTest, DriverGetsBackWhatItGave) {
  RandomScript script(GetParam());
  for (int step = 0; step < 2000; ++step) {
    script.Step();
  }
  script.FreeAll();
  Bytes balance;
  for (const SegmentEvent& event : script.harness().allocator.segment_events()) {
    const bool is_given =
        event.kind == SegmentEventKind::kAlloc || event.kind == SegmentEventKind::kMap;
    balance += is_given ? event.bytes : Bytes(0) - event.bytes;
  }
  EXPECT_EQ(balance, Bytes(0));
}

TEST_P(AllocatorPropertyTest, SameScriptGivesSameSegments) {
  RandomScript first(GetParam());
  RandomScript second(GetParam());
  for (int step = 0; step < 1000; ++step) {
    first.Step();
    second.Step();
  }
  EXPECT_EQ(first.harness().allocator.Segments(), second.harness().allocator.Segments());
}

INSTANTIATE_TEST_SUITE_P(Seeds,
                         AllocatorPropertyTest,
                         testing::Values(PropertyCase{1, false},
                                         PropertyCase{2, false},
                                         PropertyCase{3, false},
                                         PropertyCase{1, true},
                                         PropertyCase{2, true},
                                         PropertyCase{3, true}));

}  // namespace
}  // namespace dcsim
