#include "tools/views/comparison_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dcsim {
namespace {

using testing::HasSubstr;

/// A step of `predicted` and one of `measured` ms, with peaks of 1 GiB but for `more` bytes.
Comparison StepsOf(std::int64_t predicted, std::int64_t measured, std::int64_t more = 0) {
  Comparison comparison;
  comparison.name = "step.json";
  for (Result* result : {&comparison.predicted, &comparison.measured}) {
    result->peak_allocated = Bytes::GiB(1);
    result->peak_reserved = Bytes::GiB(1);
  }
  comparison.predicted.step_time = Duration::FromNs(predicted * 1'000'000);
  comparison.measured.step_time = Duration::FromNs(measured * 1'000'000);
  comparison.predicted.peak_reserved += Bytes(more);
  return comparison;
}

// 110 / 100 and 190 / 200: +10 % and -5 %, 7.5 % on average.
TEST(ComparisonTextTest, TableEndsWithMeanAndLargestError) {
  const std::string text = PrintComparisonTable({StepsOf(110, 100), StepsOf(190, 200)});
  EXPECT_THAT(text, HasSubstr("step time: mean error 7.5 %, largest +10.0 %"));
  EXPECT_THAT(text, HasSubstr("the same to the byte in 2 of 2"));
}

TEST(ComparisonTextTest, OneByteIsNotTheSame) {
  EXPECT_THAT(PrintComparisonTable({StepsOf(1, 1, 1)}),
              HasSubstr("the same to the byte in 0 of 1"));
  EXPECT_THAT(PrintComparison(StepsOf(1, 1)), HasSubstr("same byte"));
}

// Predicted 100, with the host's pace 118, measured 120.
TEST(ComparisonTextTest, TheHostsPaceHasItsOwnError) {
  Comparison slow = StepsOf(100, 120);
  slow.with_host = {1.74, StepsOf(118, 120).predicted};
  EXPECT_THAT(PrintComparison(slow),
              testing::ContainsRegex("with 1.7x host times +118 ms +120 ms +-1.7 %"));
  EXPECT_THAT(PrintComparisonTable({slow}), HasSubstr("-16.7 %"));
  EXPECT_THAT(PrintComparisonTable({slow}), HasSubstr("with 1.7x host times -1.7 %"));
}

TEST(ComparisonTextTest, StepsThatDidNotCompleteAreNotCounted) {
  Comparison stopped = StepsOf(1, 0);
  stopped.measured.outcome = "out_of_memory";
  const std::string text = PrintComparisonTable({stopped, StepsOf(100, 100)});
  EXPECT_THAT(text, HasSubstr("predicted fits, measured out_of_memory"));
  EXPECT_THAT(text, HasSubstr("in 1 of 1"));
}

TEST(ComparisonTextTest, AStepThatDidNotCompleteSaysWhereItStopped) {
  Comparison stopped = StepsOf(1, 0);
  stopped.measured.outcome = "deadlock";
  stopped.measured.stop = StopReport{"ranks have not ended after 60 s", Bytes(0), 0};
  EXPECT_THAT(PrintComparison(stopped),
              HasSubstr("\n  predicted fits\n  measured deadlock: ranks have not ended"));
}

}  // namespace
}  // namespace dcsim
