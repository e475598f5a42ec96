#include "model/base/text.h"

#include <array>
#include <cstdint>

#include <gtest/gtest.h>

#include "model/base/quantity.h"

namespace dcsim {
namespace {

using Names = std::vector<std::string_view>;

// One edit of each kind away from "stage".
TEST(NearestNameTest, FindsOneInsertedCharacter) {
  EXPECT_EQ(FindNearestName("stagge", Names{"ranks", "stage"}), "stage");
}

TEST(NearestNameTest, FindsOneDeletedCharacter) {
  EXPECT_EQ(FindNearestName("stge", Names{"ranks", "stage"}), "stage");
}

TEST(NearestNameTest, FindsOneReplacedCharacter) {
  EXPECT_EQ(FindNearestName("stabe", Names{"ranks", "stage"}), "stage");
}

// "gahter" is one swap from "gather", two replacements from "gahtxx". Counted as two edits, the
// swap would only tie, and the earlier candidate would win.
TEST(NearestNameTest, SwapOfNeighboursIsOneEdit) {
  EXPECT_EQ(FindNearestName("gahter", Names{"gahtxx", "gather"}), "gather");
}

// Three characters: a third of the length is 1, the limit never below 2.
TEST(NearestNameTest, ShortNamesMayDifferByTwoEdits) {
  EXPECT_EQ(FindNearestName("abc", Names{"axyc"}), "axyc");
}

TEST(NearestNameTest, ShortNamesMayNotDifferByThreeEdits) {
  EXPECT_EQ(FindNearestName("abc", Names{"xyzc"}), std::nullopt);
}

// Twelve characters: up to 12 / 3 = 4 edits.
TEST(NearestNameTest, LongNamesMayDifferByAThirdOfTheirLength) {
  EXPECT_EQ(FindNearestName("abcdefghijkl", Names{"abcdefghWXYZ"}), "abcdefghWXYZ");
}

TEST(NearestNameTest, LongNamesMayNotDifferByMoreThanAThird) {
  EXPECT_EQ(FindNearestName("abcdefghijkl", Names{"abcdefgVWXYZ"}), std::nullopt);
}

TEST(NearestNameTest, TiesGoToTheEarlierCandidate) {
  EXPECT_EQ(FindNearestName("zero4", Names{"zero2", "zero3"}), "zero2");
}

// Two edits turn "ab" into any other two characters: nothing of the name is left.
TEST(NearestNameTest, CandidateThatSharesNothingIsNotNear) {
  EXPECT_EQ(FindNearestName("ab", Names{"xy"}), std::nullopt);
}

// The distance takes quadratic time, so names that no key could have are not compared.
TEST(NearestNameTest, NamesBeyondOneHundredCharactersAreNotCompared) {
  const std::string name(101, 'a');
  EXPECT_EQ(FindNearestName(name, Names{name}), std::nullopt);
}

TEST(DidYouMeanTest, NamesTheNearestCandidate) {
  EXPECT_EQ(DidYouMean("stge", Names{"stage"}), ", did you mean 'stage'?");
}

TEST(DidYouMeanTest, IsEmptyWithoutANearCandidate) {
  EXPECT_EQ(DidYouMean("stge", Names{"ranks"}), "");
}

TEST(JoinAlternativesTest, SeparatesTheLastTwoByOr) {
  EXPECT_EQ(JoinAlternatives(Names{"a"}), "a");
  EXPECT_EQ(JoinAlternatives(Names{"a", "b"}), "a or b");
  EXPECT_EQ(JoinAlternatives(Names{"a", "b", "c"}), "a, b or c");
}

TEST(JoinTest, PutsTheSeparatorBetweenParts) {
  EXPECT_EQ(Join(std::vector<std::string>{}, "\n"), "");
  EXPECT_EQ(Join(std::vector<std::string>{"a", "b", "c"}, ", "), "a, b, c");
}

TEST(FindIntegerTest, ReadsTheWholeRangeOf64Bits) {
  EXPECT_EQ(FindInteger("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(FindInteger("-9223372036854775808"), INT64_MIN);
}

class FindIntegerRejectsTest : public testing::TestWithParam<const char*> {};

TEST_P(FindIntegerRejectsTest, Text) {
  EXPECT_EQ(FindInteger(GetParam()), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(
    Texts,
    FindIntegerRejectsTest,
    testing::Values("", " 1", "1 ", "+1", "1.0", "1e3", "0x10", "one", "9223372036854775808"));

TEST(FindNumberTest, ReadsDecimalsAndExponents) {
  EXPECT_EQ(FindNumber("1.5"), 1.5);
  EXPECT_EQ(FindNumber("-2"), -2.0);
  EXPECT_EQ(FindNumber("500e6"), 5e8);
}

class FindNumberRejectsTest : public testing::TestWithParam<const char*> {};

TEST_P(FindNumberRejectsTest, Text) {
  EXPECT_EQ(FindNumber(GetParam()), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Texts,
                         FindNumberRejectsTest,
                         testing::Values("", "1,5", "1.5 ", "0x10", "nan", "inf", "-inf", "1e999"));

// Published FNV-1a 64-bit vectors (Fowler, Noll, Vo: fnv-5.0, test_fnv.c).
TEST(HashBytesTest, AgreesWithTheFnvReference) {
  EXPECT_EQ(HashBytes(""), 0xcbf29ce484222325ULL);
  EXPECT_EQ(HashBytes("a"), 0xaf63dc4c8601ec8cULL);
  EXPECT_EQ(HashBytes("foobar"), 0x85944171f73967e8ULL);
}

TEST(HexDigitsTest, KeepsLeadingZeros) {
  EXPECT_EQ(HexDigits(0), "0000000000000000");
  EXPECT_EQ(HexDigits(0x1234abcdULL), "000000001234abcd");
  EXPECT_EQ(HexDigits(UINT64_MAX), "ffffffffffffffff");
}

struct DurationText {
  std::int64_t ns;
  const char* text;
};

class FormatDurationTest : public testing::TestWithParam<DurationText> {};

TEST_P(FormatDurationTest, HasThreeSignificantDigits) {
  EXPECT_EQ(FormatDuration(Duration::FromNs(GetParam().ns)), GetParam().text);
}

// Around each change of unit or of the number of decimals: 9,994 rounds down to 9.99, 9,996 up to
// 10.0, which has one decimal; 999,499 stays below a thousand of its unit, 999,500 does not.
INSTANTIATE_TEST_SUITE_P(Values,
                         FormatDurationTest,
                         testing::Values(DurationText{0, "0 ns"},
                                         DurationText{999, "999 ns"},
                                         DurationText{1'000, "1.00 us"},
                                         DurationText{9'994, "9.99 us"},
                                         DurationText{9'996, "10.0 us"},
                                         DurationText{99'940, "99.9 us"},
                                         DurationText{99'960, "100 us"},
                                         DurationText{999'499, "999 us"},
                                         DurationText{999'500, "1.00 ms"},
                                         DurationText{56'700'000, "56.7 ms"},
                                         DurationText{999'500'000, "1.00 s"},
                                         DurationText{1'234'000'000, "1.23 s"},
                                         DurationText{-999, "-999 ns"},
                                         DurationText{-123'456, "-123 us"}));

struct BytesText {
  std::int64_t bytes;
  const char* text;
};

class FormatBytesTest : public testing::TestWithParam<BytesText> {};

TEST_P(FormatBytesTest, HasThreeSignificantDigits) {
  EXPECT_EQ(FormatBytes(Bytes(GetParam().bytes)), GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(Values,
                         FormatBytesTest,
                         testing::Values(BytesText{17, "17 B"},
                                         BytesText{1023, "1023 B"},
                                         BytesText{1024, "1.00 KiB"},
                                         BytesText{12LL * 1024, "12.0 KiB"},
                                         BytesText{340LL << 20, "340 MiB"},
                                         BytesText{5LL << 28, "1.25 GiB"},
                                         BytesText{80LL << 30, "80.0 GiB"},
                                         BytesText{-1536, "-1.50 KiB"}));

class PrintBytesTest : public testing::TestWithParam<BytesText> {};

TEST_P(PrintBytesTest, UsesTheLargestUnitThatDivides) {
  EXPECT_EQ(PrintBytes(Bytes(GetParam().bytes)), GetParam().text);
}

TEST_P(PrintBytesTest, IsReadBackByFindBytes) {
  EXPECT_EQ(FindBytes(PrintBytes(Bytes(GetParam().bytes))), Bytes(GetParam().bytes));
}

INSTANTIATE_TEST_SUITE_P(Values,
                         PrintBytesTest,
                         testing::Values(BytesText{0, "0 B"},
                                         BytesText{17, "17 B"},
                                         BytesText{1025, "1025 B"},
                                         BytesText{3LL * 1024, "3 KiB"},
                                         BytesText{1536LL << 20, "1536 MiB"},
                                         BytesText{80LL << 30, "80 GiB"},
                                         BytesText{1024LL << 40, "1024 TiB"}));

}  // namespace
}  // namespace dcsim
