#include "tools/common/utf8.h"

#include <string>

#include <gtest/gtest.h>

namespace dcsim {
namespace {

class WellFormedTest : public testing::TestWithParam<std::string> {};

TEST_P(WellFormedTest, HasNoInvalidByte) {
  EXPECT_EQ(FindInvalidUtf8("a" + GetParam() + "z"), std::nullopt);
}

// First and last character of each row of Unicode 15, table 3-7.
INSTANTIATE_TEST_SUITE_P(Unicode,
                         WellFormedTest,
                         testing::Values(std::string(1, '\0'),
                                         "\x7F",
                                         "\xC2\x80",
                                         "\xDF\xBF",
                                         "\xE0\xA0\x80",
                                         "\xE0\xBF\xBF",
                                         "\xE1\x80\x80",
                                         "\xEC\xBF\xBF",
                                         "\xED\x80\x80",
                                         "\xED\x9F\xBF",
                                         "\xEE\x80\x80",
                                         "\xEF\xBF\xBF",
                                         "\xF0\x90\x80\x80",
                                         "\xF0\xBF\xBF\xBF",
                                         "\xF1\x80\x80\x80",
                                         "\xF3\xBF\xBF\xBF",
                                         "\xF4\x80\x80\x80",
                                         "\xF4\x8F\xBF\xBF"));

class IllFormedTest : public testing::TestWithParam<std::string> {};

TEST_P(IllFormedTest, IsFoundAtItsFirstByte) {
  EXPECT_EQ(FindInvalidUtf8("ab" + GetParam()), 2U);
}

// One beyond each row: a byte that begins nothing, overlong forms, surrogates, code points above
// 10FFFF, characters cut short, a wrong byte in the middle.
INSTANTIATE_TEST_SUITE_P(Unicode,
                         IllFormedTest,
                         testing::Values("\x80",
                                         "\xBF",
                                         "\xC0\x80",
                                         "\xC1\xBF",
                                         "\xC2",
                                         "\xC2\x7F",
                                         "\xC2\xC0",
                                         "\xE0\x9F\xBF",
                                         "\xED\xA0\x80",
                                         "\xE1\x80",
                                         "\xE1\x80z",
                                         "\xF0\x8F\xBF\xBF",
                                         "\xF4\x90\x80\x80",
                                         "\xF1\x80\x80",
                                         "\xF1\x80z\x80",
                                         "\xF5\x80\x80\x80",
                                         "\xFF"));

TEST(ForTerminalTest, ControlCharactersAndForeignBytesAreSpeltOut) {
  EXPECT_EQ(ForTerminal("a\x1b[31mred\x07\n\tb\x7f"), "a\\x1b[31mred\\x07\n\tb\\x7f");
  EXPECT_EQ(ForTerminal("\xc2\x9b"
                        "31m"),
            "\\xc2\\x9b31m");
  EXPECT_EQ(ForTerminal("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(ForTerminal("Größe … 大"), "Größe … 大");
}

TEST(ForTerminalTest, LongLinesKeepBothEnds) {
  const std::string line = "plan.yaml:1:2: " + std::string(1'000'000, 'x') + ", did you mean 'y'?";
  const std::string shown = ForTerminal(line);
  EXPECT_LT(shown.size(), 600U);
  EXPECT_TRUE(shown.starts_with("plan.yaml:1:2: xxx"));
  EXPECT_TRUE(shown.ends_with("xx, did you mean 'y'?"));
  const std::string short_line(600, 'x');
  EXPECT_EQ(ForTerminal(short_line), short_line);
}

TEST(ForTerminalTest, CharactersAreNotCut) {
  std::string line;
  for (int i = 0; i < 1000; ++i) {
    line += "大";
  }
  EXPECT_FALSE(FindInvalidUtf8(ForTerminal(line)));
}

TEST(ForTerminalTest, ManyLinesEnd) {
  std::string lines;
  for (int i = 0; i < 100'000; ++i) {
    lines += "line\n";
  }
  EXPECT_LT(ForTerminal(lines).size(), 1000U);
  EXPECT_TRUE(ForTerminal(lines).ends_with("and more lines"));
}

}  // namespace
}  // namespace dcsim
