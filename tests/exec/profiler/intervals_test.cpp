#include "exec/profiler/intervals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dcsim::exec {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(IntervalsTest, UnionJoinsWhatTouches) {
  EXPECT_THAT(Union({{5, 7}, {1, 3}, {3, 4}, {2, 3}, {10, 10}}),
              ElementsAre(Pair(1, 4), Pair(5, 7), Pair(10, 10)));
  EXPECT_THAT(Union({}), IsEmpty());
}

TEST(IntervalsTest, UnionKeepsTheLongerEnd) {
  EXPECT_THAT(Union({{1, 10}, {2, 3}}), ElementsAre(Pair(1, 10)));
}

TEST(IntervalsTest, LengthAddsUp) {
  EXPECT_EQ(Length({{1, 4}, {5, 7}}), Duration::FromNs(5));
}

// [0, 10) and [20, 30) without [2, 4), [8, 22) and [29, 40): 2 + 4 + 7.
TEST(IntervalsTest, LengthOutsideLeavesOutTheCovered) {
  EXPECT_EQ(LengthOutside({{0, 10}, {20, 30}}, {{2, 4}, {8, 22}, {29, 40}}), Duration::FromNs(13));
  EXPECT_EQ(LengthOutside({{0, 10}}, {}), Duration::FromNs(10));
  EXPECT_EQ(LengthOutside({}, {{0, 10}}), Duration::FromNs(0));
  EXPECT_EQ(LengthOutside({{3, 4}}, {{0, 10}}), Duration::FromNs(0));
}

}  // namespace
}  // namespace dcsim::exec
