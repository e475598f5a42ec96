#include "exec/calibrate/joint_spans.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dcsim::exec {
namespace {

using testing::ElementsAre;

// The second rank comes 40 ns after the first, and both end by 160.
TEST(JointSpansTest, JointTimeCountsFromTheLastStart) {
  EXPECT_EQ(JointTime({{100, 150}, {140, 160}}), 160 - 140);
}

TEST(JointSpansTest, LongestTimeIsThatOfTheSlowestRank) {
  EXPECT_EQ(LongestTime({{100, 150}, {140, 160}}), 150 - 100);
}

TEST(JointSpansTest, EveryRankHearsAllNumbersByRank) {
  Rendezvous server({"127.0.0.1", 0, /*serves=*/true}, {0, 0, 2});
  std::vector<std::vector<std::int64_t>> heard;
  std::thread other([&] {
    Rendezvous rendezvous({"127.0.0.1", server.port(), /*serves=*/false}, {1, 1, 2});
    heard = ExchangeNumbers(rendezvous, "key", {});
  });
  const auto own = ExchangeNumbers(server, "key", {-7, 0, 4'000'000'000'000});
  other.join();
  EXPECT_THAT(own, ElementsAre(ElementsAre(-7, 0, 4'000'000'000'000), ElementsAre()));
  EXPECT_EQ(heard, own);
}

// The first of three starts at 5, the last at 30, whenever they end.
TEST(SkewTest, IsFromTheFirstStartToTheLast) {
  EXPECT_EQ(Skew({{10, 50}, {30, 40}, {5, 100}}), 25);
  EXPECT_EQ(Skew({{7, 9}}), 0);
}

}  // namespace
}  // namespace dcsim::exec
