// How much kernels hold collectives up by what they move to memory.

#include "model/cost/memory_load.h"

#include <gtest/gtest.h>

#include "tests/model/machine/cluster_document.h"

namespace dcsim {
namespace {

constexpr Bytes kCache = Bytes(50'000'000);

// 100 MB read and as many written in 100 us: 1 + 2 TB/s. Of 10 MB each, which fill two fifths of
// the cache, in 10 us that much of it.
TEST(MemoryTrafficTest, WritesCountTwiceAndWhatTheCacheHoldsInParts) {
  const MovedBytes large = {Bytes(100'000'000), Bytes(100'000'000)};
  EXPECT_DOUBLE_EQ(MemoryTraffic(large, Duration::FromUs(100), kCache), 3e12);
  const MovedBytes small = {Bytes(10'000'000), Bytes(10'000'000)};
  EXPECT_DOUBLE_EQ(MemoryTraffic(small, Duration::FromUs(10), kCache), 0.4 * 3e12);
  EXPECT_EQ(MemoryTraffic(large, Duration(), kCache), 0);
}

// 0.25^2.5 = 1 / 32. Nothing holds up more than a plain kernel does.
TEST(MemoryLoadTest, GoesWithAPowerOfTheTraffic) {
  EXPECT_DOUBLE_EQ(MemoryLoad(1e12, 4e12), 1.0 / 32);
  EXPECT_DOUBLE_EQ(MemoryLoad(5e12, 4e12), 1);
}

// The GPU has 2 TB/s, of which kernels reach half: a plain one moves 3/2 of 1 TB/s as traffic
// counts it. 100 MB read in 100 us are 1 of 1.5: (2/3)^2.5 = 0.363.
TEST(MemoryLoadTest, OfAGpuIsPerMille) {
  GpuSpec gpu = TestCluster().gpu;
  gpu.bandwidth_efficiency = 0.5;
  const MovedBytes read = {Bytes(100'000'000), Bytes()};
  EXPECT_EQ(MemoryLoad(read, Duration::FromUs(100), gpu), Share());
  gpu.contention.beside_memory =
      BesideMemory{kCache, {{2, {}, {{Bytes::MiB(16), Longer::FromPermille(1000)}}}}, Longer()};
  EXPECT_EQ(MemoryLoad(read, Duration::FromUs(100), gpu), Share::FromPermille(363));
}

TEST(MovedBytesTest, NormsOnlyRead) {
  EXPECT_EQ(MovedByPattern(MemoryPattern::kNorm, Bytes(90)).written, Bytes());
  EXPECT_EQ(MovedByPattern(MemoryPattern::kCopy, Bytes(90)).written, Bytes(45));
  EXPECT_EQ(MovedByPattern(MemoryPattern::kCopy, Bytes(90)).read, Bytes(45));
}

// Between 16 and 64 MiB 32 is half of the way by logarithm; beyond the points the nearest counts.
// Of 2 and 8 ranks 4 is nearer to 2.
TEST(BesideMemoryTest, FollowsThePayloadsLogarithm) {
  Contention contention;
  contention.collective_start = Duration::FromUs(9);
  EXPECT_EQ(contention.LongerBesideMemory(Bytes::MiB(16), 2), Longer::FromPermille(0));
  EXPECT_EQ(contention.CollectiveStart(2), Duration::FromUs(9));
  contention.beside_memory =
      BesideMemory{kCache,
                   {{2,
                     Duration::FromUs(3),
                     {{Bytes::MiB(16), Longer::FromPermille(1200)},
                      {Bytes::MiB(64), Longer::FromPermille(400)}}},
                    {8, Duration::FromUs(7), {{Bytes::MiB(16), Longer::FromPermille(50)}}}},
                   Longer()};
  EXPECT_EQ(contention.LongerBesideMemory(Bytes::MiB(1), 2), Longer::FromPermille(1200));
  EXPECT_EQ(contention.LongerBesideMemory(Bytes::MiB(16), 2), Longer::FromPermille(1200));
  EXPECT_EQ(contention.LongerBesideMemory(Bytes::MiB(32), 2), Longer::FromPermille(800));
  EXPECT_EQ(contention.LongerBesideMemory(Bytes::MiB(64), 4), Longer::FromPermille(400));
  EXPECT_EQ(contention.LongerBesideMemory(Bytes::MiB(512), 4), Longer::FromPermille(400));
  EXPECT_EQ(contention.LongerBesideMemory(Bytes::MiB(64), 16), Longer::FromPermille(50));
  EXPECT_EQ(contention.LongerBesideMemory(Bytes::MiB(64), 1), Longer::FromPermille(0));
  EXPECT_EQ(contention.CollectiveStart(4), Duration::FromUs(3));
}

}  // namespace
}  // namespace dcsim
