#include "sim/engine/rank_spread.h"

#include <vector>

#include <gtest/gtest.h>

namespace dcsim {
namespace {

constexpr Duration kFar = Duration::FromUs(1000);

RankSpread::Occupied Product(std::int64_t us) {
  return {Duration::FromUs(us), Duration::FromUs(us)};
}

RankSpread::Occupied Streaming(std::int64_t us) {
  return {Duration::FromUs(us), Duration()};
}

RankSpread Spread(const std::vector<RankSpread::Occupied>& compute, Duration drift = kFar) {
  return {compute, drift};
}

// The later of two uniform waits of up to 100 us, one of them over at once: the other's mean.
TEST(RankSpreadTest, OfTwoRanksTheOtherOnesMeanWait) {
  EXPECT_EQ(Spread({Product(100)}).LastStart(0, Duration(), kFar, 2).ns(), 50'000);
}

// The largest of three uniform waits is 3/4 of the longest.
TEST(RankSpreadTest, OfFourRanksTheLongestOfThreeWaits) {
  EXPECT_EQ(Spread({Product(100)}).LastStart(0, Duration(), kFar, 4).ns(), 75'000);
}

// With half of it over: 1/8 that all others are earlier, else the largest of those behind:
// 100 - 100 (1 - 1/16) / 4 = 76.5625 us.
TEST(RankSpreadTest, AWaitOfOnesOwnIsPartOfIt) {
  EXPECT_EQ(Spread({Product(100)}).LastStart(0, Duration::FromUs(50), kFar, 4).ns(), 76'563);
}

// Half of the time there is room at once: the other rank waits 25 us in the mean.
TEST(RankSpreadTest, KernelsBesideWhichThereIsRoomShortenIt) {
  EXPECT_EQ(Spread({Product(100), Streaming(100)}).LastStart(1, Duration(), kFar, 2).ns(), 25'000);
}

// Attention of 400 us in four waves keeps nobody waiting for more than 100.
TEST(RankSpreadTest, AKernelOfManyWavesIsWaitedForByTheWave) {
  const RankSpread::Occupied attention{Duration::FromUs(400), Duration::FromUs(100)};
  EXPECT_EQ(Spread({attention}).LastStart(0, Duration(), kFar, 2).ns(), 50'000);
}

// Ranks 10 us apart differ by a tenth of what they do anywhere in a product of 100.
TEST(RankSpreadTest, RanksThatAreNearMeetSoon) {
  EXPECT_EQ(Spread({Product(100)}).LastStart(0, Duration(), Duration::FromUs(10), 4).ns(), 7'500);
}

TEST(RankSpreadTest, OneRankWaitsForNobody) {
  EXPECT_EQ(Spread({Product(100)}).LastStart(0, Duration::FromUs(3), kFar, 1).ns(), 3'000);
}

TEST(RankSpreadTest, WhereNothingFillsTheGpuNobodyWaits) {
  EXPECT_EQ(Spread({Streaming(100)}).LastStart(0, Duration(), kFar, 4).ns(), 0);
}

// The product is more than 20 us away from the last kernel.
TEST(RankSpreadTest, OnlyNearbyKernelsCount) {
  const RankSpread spread =
      Spread({Product(100), Streaming(50), Streaming(50)}, Duration::FromUs(20));
  EXPECT_EQ(spread.LastStart(2, Duration(), kFar, 4).ns(), 0);
  EXPECT_GT(spread.LastStart(1, Duration(), kFar, 4).ns(), 0);
}

}  // namespace
}  // namespace dcsim
