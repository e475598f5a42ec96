#include "model/base/error.h"

#include <gtest/gtest.h>

namespace dcsim {
namespace {

TEST(CheckDeathTest, BrokenInvariantAbortsWithPlaceConditionAndReason) {
  const int parts = 3;
  EXPECT_DEATH(
      DCSIM_CHECK(parts == 4) << "a square has " << 4,
      "error_test.cpp:[0-9]+: internal error, please report it: parts == 4 a square has 4");
}

TEST(CheckTest, HeldInvariantEvaluatesNoMessage) {
  int evaluated = 0;
  DCSIM_CHECK(evaluated == 0) << ++evaluated;
  EXPECT_EQ(evaluated, 0);
}

// As the body of an if without braces it must not take the else that follows.
TEST(CheckTest, IsOneStatement) {
  bool other = false;
  if (other)
    DCSIM_CHECK(true);
  else
    other = true;
  EXPECT_TRUE(other);
}

}  // namespace
}  // namespace dcsim
