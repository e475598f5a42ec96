#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "sim/memory/caching_allocator.h"
#include "tests/sim/memory/allocator_harness.h"

namespace dcsim {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

AllocatorConfig Expandable() {
  AllocatorConfig config;
  config.expandable_segments = true;
  config.capacity = Bytes::GiB(8);
  return config;
}

TEST(ExpandableSegmentsTest, PagesAre2MiBInSmallAnd20MiBInLargePools) {
  AllocatorHarness harness(Expandable());
  harness.Allocate(Bytes(1));
  harness.Allocate(Bytes(kMiB + 1));
  harness.Allocate(Bytes::MiB(30));
  EXPECT_EQ(harness.NewEvents(), "map 2 MiB, map 20 MiB, map 20 MiB");
  EXPECT_EQ(harness.allocator.stats().reserved.current, Bytes::MiB(42));
  EXPECT_EQ(harness.allocator.stats().segments.current, 0);
}

// 15 MiB of 20 are used; 15 more find 5 free behind and map one page for the missing 10.
TEST(ExpandableSegmentsTest, GrowsBehindTheLastBlock) {
  AllocatorHarness harness(Expandable());
  harness.Allocate(Bytes::MiB(15));
  EXPECT_EQ(harness.Offset(harness.Allocate(Bytes::MiB(15))), 15 * kMiB);
  EXPECT_EQ(harness.NewEvents(), "map 20 MiB, map 20 MiB");
  EXPECT_EQ(harness.allocator.Segments().size(), 1U);
}

// The large pool splits down to 512 bytes, so allocated is the sum of rounded sizes.
TEST(ExpandableSegmentsTest, AllocatedIsTheRoundedRequest) {
  AllocatorHarness harness(Expandable());
  harness.Allocate(Bytes(20 * kMiB - 512));
  EXPECT_EQ(harness.allocator.stats().allocated.current, Bytes(20 * kMiB - 512));
  EXPECT_EQ(harness.allocator.stats().inactive_split.current, Bytes(0));
}

// Free: a hole of 8 MiB at 0 and the last 4 MiB of the mapped 20. 3 MiB would fit both; the end
// counts with all it can grow to, so the hole is taken although it is the larger one.
TEST(ExpandableSegmentsTest, HolesAreTakenBeforeTheEnd) {
  AllocatorHarness harness(Expandable());
  const BlockHandle hole = harness.Allocate(Bytes::MiB(8));
  harness.Allocate(Bytes::MiB(8));
  harness.Free(hole);
  EXPECT_EQ(harness.Offset(harness.Allocate(Bytes::MiB(3))), 0);
}

// [0, 5) and [95, 100) used, between them 90 MiB free: pages 20 to 80 go, [5, 20) and [80, 95)
// stay cached. Of these two the second cannot grow, so it is taken first.
TEST(ExpandableSegmentsTest, OnlyWholePagesAreUnmapped) {
  AllocatorHarness harness(Expandable());
  harness.Allocate(Bytes::MiB(5));
  const BlockHandle middle = harness.Allocate(Bytes::MiB(90));
  harness.Allocate(Bytes::MiB(5));
  harness.Free(middle);
  EXPECT_EQ(harness.NewEvents(), "map 20 MiB, map 80 MiB");
  harness.allocator.EmptyCache();
  EXPECT_EQ(harness.NewEvents(), "unmap 60 MiB");
  EXPECT_EQ(harness.allocator.stats().reserved.current, Bytes::MiB(40));
  EXPECT_EQ(harness.allocator.Segments().size(), 2U);
  EXPECT_EQ(harness.Offset(harness.Allocate(Bytes::MiB(15))), 80 * kMiB);
  EXPECT_EQ(harness.Offset(harness.Allocate(Bytes::MiB(15))), 5 * kMiB);
}

// As above, then 50 MiB: the gap offers [5, 95); 15 are free at its front, 35 more are two pages.
TEST(ExpandableSegmentsTest, LowestGapIsMappedFirst) {
  AllocatorHarness harness(Expandable());
  harness.Allocate(Bytes::MiB(5));
  const BlockHandle middle = harness.Allocate(Bytes::MiB(90));
  harness.Allocate(Bytes::MiB(5));
  harness.Free(middle);
  harness.allocator.EmptyCache();
  harness.NewEvents();
  EXPECT_EQ(harness.Offset(harness.Allocate(Bytes::MiB(50))), 5 * kMiB);
  EXPECT_EQ(harness.NewEvents(), "map 40 MiB");
}

// As above, then 100 MiB: the gap holds only 90, so the segment grows at its end.
TEST(ExpandableSegmentsTest, GapThatIsTooSmallIsPassedOver) {
  AllocatorHarness harness(Expandable());
  harness.Allocate(Bytes::MiB(5));
  const BlockHandle middle = harness.Allocate(Bytes::MiB(90));
  harness.Allocate(Bytes::MiB(5));
  harness.Free(middle);
  harness.allocator.EmptyCache();
  harness.NewEvents();
  EXPECT_EQ(harness.Offset(harness.Allocate(Bytes::MiB(100))), 100 * kMiB);
  EXPECT_EQ(harness.NewEvents(), "map 100 MiB");
}

// The limit is compared with what a cudaMalloc would have asked for, 26 MiB, and not with the two
// pages that are mapped: reserved memory ends above the limit.
TEST(ExpandableSegmentsTest, LimitCountsTheRequestNotThePages) {
  AllocatorConfig config = Expandable();
  config.memory_limit = Bytes::MiB(30);
  AllocatorHarness harness(config);
  EXPECT_NE(harness.AllocateOrRetry(Bytes::MiB(25)), kNoBlock);
  EXPECT_EQ(harness.allocator.stats().reserved.current, Bytes::MiB(40));
}

// Limit 80 MiB, 60 reserved by stream 1, of which 5 are used: 30 more for stream 0 would pass the
// limit. The retry unmaps two whole pages, [20, 60), and maps two for stream 0.
TEST(ExpandableSegmentsTest, RetryMovesPagesBetweenStreams) {
  AllocatorConfig config = Expandable();
  config.memory_limit = Bytes::MiB(80);
  AllocatorHarness harness(config);
  harness.Allocate(Bytes::MiB(5), 1);
  harness.Free(harness.Allocate(Bytes::MiB(55), 1));
  EXPECT_NE(harness.AllocateOrRetry(Bytes::MiB(30), 0), kNoBlock);
  EXPECT_EQ(harness.NewEvents(), "map 20 MiB, map 40 MiB, unmap 40 MiB, map 40 MiB");
  EXPECT_EQ(harness.allocator.stats().retries, 1);
}

// The driver counts pages: of 50 MiB it maps two for 25 MiB, and refuses a third.
TEST(ExpandableSegmentsTest, DriverCountsPages) {
  AllocatorConfig config = Expandable();
  config.capacity = Bytes::MiB(50);
  AllocatorHarness harness(config);
  EXPECT_NE(harness.AllocateOrRetry(Bytes::MiB(25)), kNoBlock);
  EXPECT_EQ(harness.AllocateOrRetry(Bytes::MiB(16)), kNoBlock);
  EXPECT_NE(harness.AllocateOrRetry(Bytes::MiB(15)), kNoBlock);
  EXPECT_EQ(harness.NewEvents(), "map 40 MiB");
}

// A segment has 9/8 of the device's memory in addresses, in whole pages: 80 MiB here, whatever the
// capacity.
TEST(ExpandableSegmentsTest, NoSegmentHoldsMoreThanItsAddresses) {
  AllocatorConfig config = Expandable();
  config.device_memory = Bytes::MiB(64);
  AllocatorHarness harness(config);
  EXPECT_EQ(harness.AllocateOrRetry(Bytes::MiB(100)), kNoBlock);
  EXPECT_NE(harness.AllocateOrRetry(Bytes::MiB(70)), kNoBlock);
}

TEST(ExpandableSegmentsTest, EmptyCacheRemovesUnusedSegments) {
  AllocatorHarness harness(Expandable());
  harness.Free(harness.Allocate(Bytes::MiB(55)));
  harness.Free(harness.Allocate(Bytes(1)));
  harness.NewEvents();
  harness.allocator.EmptyCache();
  EXPECT_EQ(harness.NewEvents(), "unmap 60 MiB, unmap 2 MiB");
  EXPECT_TRUE(harness.allocator.Segments().empty());
  EXPECT_EQ(harness.allocator.stats().reserved.current, Bytes(0));
}

}  // namespace
}  // namespace dcsim
