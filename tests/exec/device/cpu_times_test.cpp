#include "exec/device/cpu_times.h"

#include <gtest/gtest.h>

namespace dcsim::exec {
namespace {

TEST(CpuTimesTest, BusyTimeIsAllButIdleAndStolen) {
  const auto times = ParseCpuTimes("cpu  2640 5 1264 223155 143 7 23 658 0 0");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->busy, 2640 + 5 + 1264 + 7 + 23);
  EXPECT_EQ(times->stolen, 658);
}

TEST(CpuTimesTest, OtherTextIsNone) {
  EXPECT_FALSE(ParseCpuTimes(""));
  EXPECT_FALSE(ParseCpuTimes("cpu 1 2 3"));
  EXPECT_FALSE(ParseCpuTimes("intr 1 2 3 4 5 6 7 8 9"));
}

TEST(CpuTimesTest, StolenIsAShareOfWhatWasAskedFor) {
  EXPECT_EQ(StolenShare({100, 10}, {130, 20}), 0.25);
  EXPECT_EQ(StolenShare({100, 10}, {130, 10}), 0);
  EXPECT_FALSE(StolenShare({100, 10}, {100, 10}));
}

TEST(CpuTimesTest, ThisMachineSays) {
  EXPECT_TRUE(ReadCpuTimes());
}

}  // namespace
}  // namespace dcsim::exec
