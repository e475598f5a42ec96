#include "tools/views/table_text.h"

#include <gtest/gtest.h>

namespace dcsim {
namespace {

TEST(TableTextTest, ValuesEndInOneColumn) {
  EXPECT_EQ(TableLine("step time", "611 ms", ""), "step time                    611 ms\n");
  EXPECT_EQ(TableLine("x", "7", "note"), "x                                 7   note\n");
}

TEST(TableTextTest, LongLabelKeepsASpace) {
  EXPECT_EQ(TableLine("a label that is longer than its column", "7", ""),
            "a label that is longer than its column 7\n");
}

TEST(TableTextTest, ThousandsAreSetApart) {
  EXPECT_EQ(Thousands(0), "0");
  EXPECT_EQ(Thousands(999), "999");
  EXPECT_EQ(Thousands(1000), "1,000");
  EXPECT_EQ(Thousands(53620.4), "53,620");
  EXPECT_EQ(Thousands(8'190'735'360), "8,190,735,360");
}

TEST(TableTextTest, SharesArePercentWithOneDecimal) {
  EXPECT_EQ(Percent(0.447), "44.7 %");
  EXPECT_EQ(Percent(0), "0.0 %");
  EXPECT_EQ(Percent(1), "100.0 %");
}

}  // namespace
}  // namespace dcsim
