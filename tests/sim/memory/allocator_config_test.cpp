#include "sim/memory/allocator_config.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace dcsim {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

struct SizeCase {
  std::int64_t requested;
  std::int64_t rounded;
  std::int64_t segment;
};

class SizeTest : public testing::TestWithParam<SizeCase> {};

// Blocks are multiples of 512 bytes. Segments are 2 MiB up to 1 MiB, 20 MiB below 10 MiB, and from
// there on the request rounded up to 2 MiB.
TEST_P(SizeTest, DefaultSettings) {
  const AllocatorConfig config;
  const Bytes rounded = RoundedSize(config, Bytes(GetParam().requested));
  EXPECT_EQ(rounded.count(), GetParam().rounded);
  EXPECT_EQ(SegmentSize(config, rounded).count(), GetParam().segment);
}

INSTANTIATE_TEST_SUITE_P(Edges,
                         SizeTest,
                         testing::Values(SizeCase{1, 512, 2 * kMiB},
                                         SizeCase{512, 512, 2 * kMiB},
                                         SizeCase{513, 1024, 2 * kMiB},
                                         SizeCase{kMiB, kMiB, 2 * kMiB},
                                         SizeCase{kMiB + 1, kMiB + 512, 20 * kMiB},
                                         SizeCase{10 * kMiB - 512, 10 * kMiB - 512, 20 * kMiB},
                                         SizeCase{10 * kMiB - 511, 10 * kMiB, 10 * kMiB},
                                         SizeCase{10 * kMiB + 1, 10 * kMiB + 512, 12 * kMiB},
                                         SizeCase{20 * kMiB, 20 * kMiB, 20 * kMiB},
                                         SizeCase{500 * kMiB + 1, 500 * kMiB + 512, 502 * kMiB}));

// With 4 divisions, the steps between 1024 MiB and 2048 MiB are 256 MiB: 1100 becomes 1280, a
// power of two stays. Requests of at most 4 * 512 bytes are rounded to 512 as ever.
TEST(AllocatorConfigTest, RoundupDivisionsDivideEachPowerOfTwo) {
  AllocatorConfig config;
  config.roundup_power2_divisions.fill(4);
  EXPECT_EQ(RoundedSize(config, Bytes::MiB(1100)), Bytes::MiB(1280));
  EXPECT_EQ(RoundedSize(config, Bytes::MiB(1280)), Bytes::MiB(1280));
  EXPECT_EQ(RoundedSize(config, Bytes::MiB(1024)), Bytes::MiB(1024));
  EXPECT_EQ(RoundedSize(config, Bytes(2049)), Bytes(2560));
  EXPECT_EQ(RoundedSize(config, Bytes(1700)), Bytes(2048));
}

// Class 0 is everything below 2 MiB, class 1 is 2 to 4 MiB, the last one 32 GiB and more.
TEST(AllocatorConfigTest, RoundupDivisionsAreChosenBySize) {
  AllocatorConfig config;
  config.roundup_power2_divisions[1] = 2;
  EXPECT_EQ(RoundedSize(config, Bytes::KiB(2047)), Bytes::KiB(2047));
  EXPECT_EQ(RoundedSize(config, Bytes::KiB(2049)), Bytes::MiB(3));
  EXPECT_EQ(RoundedSize(config, Bytes::KiB(4097)), Bytes::KiB(4097));
  config.roundup_power2_divisions[15] = 2;
  EXPECT_EQ(RoundedSize(config, Bytes::GiB(65)), Bytes::GiB(96));
}

// large_segment_size replaces the 20 MiB, not the limits of 1 and 10 MiB.
TEST(AllocatorConfigTest, LargeSegmentSizeServesMiddleRequests) {
  AllocatorConfig config;
  config.large_segment_size = Bytes::MiB(40);
  EXPECT_EQ(SegmentSize(config, Bytes::MiB(1)), Bytes::MiB(2));
  EXPECT_EQ(SegmentSize(config, Bytes::MiB(9)), Bytes::MiB(40));
  EXPECT_EQ(SegmentSize(config, Bytes::MiB(10)), Bytes::MiB(10));
}

TEST(AllocatorConfigDeathTest, RefusesWhatPyTorchRefuses) {
  AllocatorConfig config;
  config.max_split_size = Bytes::MiB(10);
  EXPECT_DEATH(CheckConfig(config), "max_split_size");
  config = {};
  config.roundup_power2_divisions[3] = 3;
  EXPECT_DEATH(CheckConfig(config), "divisions");
}

}  // namespace
}  // namespace dcsim
