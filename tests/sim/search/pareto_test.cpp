#include "sim/search/pareto.h"

#include <gtest/gtest.h>

#include "sim/search/random.h"

namespace dcsim {
namespace {

Scored Point(std::int64_t time_ns, std::int64_t reserved) {
  Scored scored;
  scored.score.step_time = Duration::FromNs(time_ns);
  scored.score.peak_reserved = Bytes(reserved);
  return scored;
}

TEST(ParetoFrontTest, KeepsWhatNothingBeats) {
  ParetoFront front;
  EXPECT_TRUE(front.Insert(Point(10, 5)));
  EXPECT_TRUE(front.Insert(Point(5, 10)));
  EXPECT_TRUE(front.Insert(Point(7, 7)));
  EXPECT_EQ(front.members().size(), 3U);
}

TEST(ParetoFrontTest, RefusesWhatIsBeaten) {
  ParetoFront front;
  front.Insert(Point(5, 5));
  EXPECT_FALSE(front.Insert(Point(5, 6)));
  EXPECT_FALSE(front.Insert(Point(6, 5)));
  EXPECT_FALSE(front.Insert(Point(5, 5)));
}

TEST(ParetoFrontTest, ThrowsOutWhatItBeats) {
  ParetoFront front;
  front.Insert(Point(10, 5));
  front.Insert(Point(8, 7));
  front.Insert(Point(5, 10));
  EXPECT_TRUE(front.Insert(Point(7, 5)));
  ASSERT_EQ(front.members().size(), 2U);
  EXPECT_EQ(front.members()[1].score.step_time, Duration::FromNs(7));
}

TEST(ParetoFrontTest, TakesOnlyWhatFits) {
  ParetoFront front;
  Scored over = Point(0, 100);
  over.score.verdict = Verdict::kOverLimit;
  EXPECT_FALSE(front.Insert(over));
}

// Against the definition: a member is a point that no other point beats in both.
TEST(ParetoFrontTest, IsTheSetOfUnbeatenPoints) {
  Random random(3);
  std::vector<Scored> points;
  ParetoFront front;
  for (int i = 0; i < 400; ++i) {
    points.push_back(Point(static_cast<std::int64_t>(random.Below(60)),
                           static_cast<std::int64_t>(random.Below(60))));
    front.Insert(points.back());
  }
  const auto beats = [](const Score& a, const Score& b) {
    return a.step_time <= b.step_time && a.peak_reserved <= b.peak_reserved && !(a == b);
  };
  std::size_t unbeaten = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    bool beaten = false;
    for (std::size_t k = 0; k < points.size(); ++k) {
      beaten = beaten || beats(points[k].score, points[i].score) ||
               (k < i && points[k].score == points[i].score);
    }
    unbeaten += beaten ? 0U : 1U;
  }
  EXPECT_EQ(front.members().size(), unbeaten);
  for (std::size_t i = 1; i < front.members().size(); ++i) {
    EXPECT_LT(front.members()[i - 1].score.step_time, front.members()[i].score.step_time);
    EXPECT_GT(front.members()[i - 1].score.peak_reserved, front.members()[i].score.peak_reserved);
  }
}

}  // namespace
}  // namespace dcsim
