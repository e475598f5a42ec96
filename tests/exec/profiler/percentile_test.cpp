#include "exec/profiler/percentile.h"

#include <gtest/gtest.h>

#include "model/base/median.h"

namespace dcsim::exec {
namespace {

// Of four values places 0 to 3: half of 3 is 1.5, nine tenths are 2.7; the lower place counts. The
// median's place is half of the count, 2.
TEST(PercentileTest, TakesTheLowerOfTwoAndTheMedianTheUpper) {
  EXPECT_EQ(Percentile({40, 10, 30, 20}, 50), 20);
  EXPECT_EQ(Percentile({40, 10, 30, 20}, 90), 30);
  EXPECT_EQ(Median(std::vector{40, 10, 30, 20}), 30);
}

TEST(PercentileTest, OfAnOddNumberBothTakeTheMiddle) {
  EXPECT_EQ(Percentile({7, 1, 3}, 50), 3);
  EXPECT_EQ(Median(std::vector{7, 1, 3}), 3);
}

TEST(PercentileTest, OfNothingIsZero) {
  EXPECT_EQ(Percentile({}, 90), 0);
  EXPECT_EQ(Median(std::vector<int>()), 0);
}

}  // namespace
}  // namespace dcsim::exec
