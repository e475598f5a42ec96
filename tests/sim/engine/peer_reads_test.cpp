#include "sim/engine/peer_reads.h"

#include <gtest/gtest.h>

namespace dcsim {
namespace {

constexpr std::int64_t kLong = 1'000'000;

TEST(PeerReadsTest, NothingIsReadAtFirst) {
  const PeerReads reads;
  EXPECT_TRUE(reads.empty());
  EXPECT_FALSE(reads.reading());
  EXPECT_EQ(reads.Within(0, 100), 0);
}

// From 10 to 30 and from 50 on.
TEST(PeerReadsTest, WhatIsReadCountsWithinTheTime) {
  PeerReads reads;
  reads.Begin(10);
  reads.End(30, kLong);
  reads.Begin(50);
  EXPECT_TRUE(reads.reading());
  EXPECT_FALSE(reads.empty());
  EXPECT_EQ(reads.Within(-5, 60), 30);
  EXPECT_EQ(reads.Within(20, 60), 20);
  EXPECT_EQ(reads.Within(30, 50), 0);
  EXPECT_EQ(reads.Within(55, 60), 5);
  reads.End(60, kLong);
  EXPECT_FALSE(reads.reading());
  EXPECT_EQ(reads.Within(20, 100), 20);
}

// What ended 25 ns and more before the last end is forgotten: the first one, not the second.
TEST(PeerReadsTest, WhatIsLongAgoIsForgotten) {
  PeerReads reads;
  reads.Begin(0);
  reads.End(10, 25);
  reads.Begin(20);
  reads.End(30, 25);
  reads.Begin(40);
  reads.End(50, 25);
  EXPECT_EQ(reads.Within(0, 50), 20);
  EXPECT_EQ(reads.Within(25, 50), 15);
}

}  // namespace
}  // namespace dcsim
