#include "model/base/rate.h"

#include <limits>
#include <type_traits>

#include <gtest/gtest.h>

namespace dcsim {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// A bare number is no rate, so nothing that was computed becomes one unchecked.
static_assert(!std::is_convertible_v<std::int64_t, Rate> && !std::is_constructible_v<Rate, int>);
static_assert(!std::is_convertible_v<std::int64_t, Share> && !std::is_constructible_v<Share, int>);

TEST(RateTest, IsMoreThanNothingAndAtMostOne) {
  EXPECT_EQ(Rate::FromPermille(0).permille(), 1);
  EXPECT_EQ(Rate::FromPermille(-kMost).permille(), 1);
  EXPECT_EQ(Rate::FromPermille(kMost), Rate());
  EXPECT_EQ(Rate::Nearest(0.0001).permille(), 1);
  EXPECT_EQ(Rate::Nearest(7), Rate());
  EXPECT_EQ(Rate::Of(1, 5'000).permille(), 1);
  EXPECT_EQ(Rate::Of(3, 2), Rate());
  EXPECT_EQ(Rate::FromPermille(1).Beside(Share::All()).permille(), 1);
}

TEST(RateTest, RoundsDownAndItsTimesUp) {
  const Rate two_thirds = Rate::Of(2, 3);
  EXPECT_EQ(two_thirds.permille(), 666);
  EXPECT_EQ(two_thirds.WorkIn(3), 1'998);
  EXPECT_EQ(two_thirds.TimeFor(2'000), 4);
  EXPECT_EQ(two_thirds.Stretch(666), 1'000);
  EXPECT_EQ(two_thirds.Beside(Share::FromPermille(500)).permille(), 833);
}

TEST(ShareTest, IsFromNothingToAll) {
  EXPECT_EQ(Share::FromPermille(-1), Share());
  EXPECT_EQ(Share::FromPermille(kMost), Share::All());
  EXPECT_EQ(Share::Of(7, 3), Share::All());
  EXPECT_EQ(Share::Nearest(-3), Share());
  EXPECT_EQ(Share::Below(1e300), Share::All());
  EXPECT_EQ(Share::Below(0.0139).permille(), 13);
  EXPECT_EQ(Share::FromPermille(250).PartOf(10), 2);
  EXPECT_EQ(Share::FromPermille(250).Rest().permille(), 750);
}

}  // namespace
}  // namespace dcsim
