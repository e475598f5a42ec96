#include "model/base/quantity.h"

#include <gtest/gtest.h>

namespace dcsim {
namespace {

struct Whole {
  const char* text;
  std::int64_t count;
};

class BytesQuantityTest : public testing::TestWithParam<Whole> {};

TEST_P(BytesQuantityTest, IsRead) {
  EXPECT_EQ(FindBytes(GetParam().text), Bytes(GetParam().count));
}

// Decimal units are powers of 1000, binary ones of 1024.
INSTANTIATE_TEST_SUITE_P(Units,
                         BytesQuantityTest,
                         testing::Values(Whole{"7 B", 7},
                                         Whole{"7 kB", 7'000},
                                         Whole{"7 MB", 7'000'000},
                                         Whole{"7 GB", 7'000'000'000},
                                         Whole{"7 TB", 7'000'000'000'000},
                                         Whole{"7 KiB", 7LL << 10},
                                         Whole{"7 MiB", 7LL << 20},
                                         Whole{"7 GiB", 7LL << 30},
                                         Whole{"7 TiB", 7LL << 40}));

INSTANTIATE_TEST_SUITE_P(Numbers,
                         BytesQuantityTest,
                         testing::Values(Whole{"0 B", 0},
                                         Whole{"80GiB", 80LL << 30},
                                         Whole{"1.5 KiB", 1536},
                                         Whole{"2e3 B", 2000},
                                         Whole{"0.4 B", 0},
                                         Whole{"0.6 B", 1},
                                         Whole{"1.0006 kB", 1001},
                                         Whole{"9000000 TB", 9'000'000'000'000'000'000}));

class NoBytesTest : public testing::TestWithParam<const char*> {};

TEST_P(NoBytesTest, IsRejected) {
  EXPECT_EQ(FindBytes(GetParam()), std::nullopt);
}

// 9,300,000 TB are 9.3e18 bytes, beyond the 9.22e18 of 63 bits.
INSTANTIATE_TEST_SUITE_P(Texts,
                         NoBytesTest,
                         testing::Values("",
                                         "80",
                                         "GiB",
                                         " 80 GiB",
                                         "80  GiB",
                                         "80 GiB ",
                                         "80 gib",
                                         "80 KB",
                                         "80 Gb",
                                         "80 GB/s",
                                         "-1 B",
                                         "+1 B",
                                         "nan B",
                                         "inf GB",
                                         "1,5 GB",
                                         "0x10 B",
                                         "9300000 TB"));

class DurationQuantityTest : public testing::TestWithParam<Whole> {};

TEST_P(DurationQuantityTest, IsReadInNanoseconds) {
  EXPECT_EQ(FindDuration(GetParam().text), Duration::FromNs(GetParam().count));
}

INSTANTIATE_TEST_SUITE_P(Units,
                         DurationQuantityTest,
                         testing::Values(Whole{"7 ns", 7},
                                         Whole{"4.9 us", 4'900},
                                         Whole{"4.9us", 4'900},
                                         Whole{"7 ms", 7'000'000},
                                         Whole{"7 s", 7'000'000'000},
                                         Whole{"0.6 ns", 1}));

TEST(DurationQuantityTest, OtherUnitsAreRejected) {
  EXPECT_EQ(FindDuration("5 min"), std::nullopt);
  EXPECT_EQ(FindDuration("5"), std::nullopt);
  EXPECT_EQ(FindDuration("5 ks"), std::nullopt);
}

class RateQuantityTest : public testing::TestWithParam<Whole> {};

TEST_P(RateQuantityTest, IsReadInBytesPerSecond) {
  EXPECT_EQ(FindBytesPerSecond(GetParam().text), BytesPerSecond(GetParam().count));
}

INSTANTIATE_TEST_SUITE_P(Units,
                         RateQuantityTest,
                         testing::Values(Whole{"7 kB/s", 7'000},
                                         Whole{"7 MB/s", 7'000'000},
                                         Whole{"450 GB/s", 450'000'000'000},
                                         Whole{"4.8 TB/s", 4'800'000'000'000}));

// Bits and binary rates are not what any data sheet or nccl-tests states.
TEST(RateQuantityTest, BitsAndBinaryUnitsAreRejected) {
  EXPECT_EQ(FindBytesPerSecond("450 Gb/s"), std::nullopt);
  EXPECT_EQ(FindBytesPerSecond("450 GiB/s"), std::nullopt);
  EXPECT_EQ(FindBytesPerSecond("450 GB"), std::nullopt);
}

TEST(ElementsQuantityTest, IsReadAsACount) {
  EXPECT_EQ(FindElements("500e6 elements"), 500'000'000);
  EXPECT_EQ(FindElements("1 elements"), 1);
}

TEST(ElementsQuantityTest, BareNumbersAndOtherUnitsAreRejected) {
  EXPECT_EQ(FindElements("500e6"), std::nullopt);
  EXPECT_EQ(FindElements("500 MB"), std::nullopt);
}

TEST(FlopsQuantityTest, IsReadInOperationsPerSecond) {
  EXPECT_EQ(FindFlopsPerSecond("60 GFLOP/s"), 60e9);
  EXPECT_EQ(FindFlopsPerSecond("989 TFLOP/s"), 989e12);
  EXPECT_EQ(FindFlopsPerSecond("2.25 PFLOP/s"), 2.25e15);
}

TEST(FlopsQuantityTest, FlopsWithoutATimeAreRejected) {
  EXPECT_EQ(FindFlopsPerSecond("989 TFLOPS"), std::nullopt);
}

}  // namespace
}  // namespace dcsim
