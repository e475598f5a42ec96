#include "model/base/units.h"

#include <type_traits>

#include <gtest/gtest.h>

#include "model/base/ids.h"

namespace dcsim {
namespace {

TEST(DurationTest, UnitsAreNanoseconds) {
  EXPECT_EQ(Duration::FromUs(3), Duration::FromNs(3'000));
  EXPECT_EQ(Duration::FromMs(3), Duration::FromNs(3'000'000));
  EXPECT_EQ(Duration::FromNs(1'500).us(), 1.5);
  EXPECT_EQ(Duration::FromUs(1'500).ms(), 1.5);
  EXPECT_EQ(Duration::FromMs(1'500).seconds(), 1.5);
}

TEST(DurationTest, DifferencesMayBeNegative) {
  EXPECT_EQ((Duration::FromNs(2) - Duration::FromNs(5)).ns(), -3);
}

TEST(SimTimeTest, DifferenceIsTheSpanThatLeadsBack) {
  const SimTime start = SimTime::FromNs(100);
  EXPECT_EQ(start + (SimTime::FromNs(175) - start), SimTime::FromNs(175));
}

TEST(BytesTest, BinaryUnitsArePowersOf1024) {
  EXPECT_EQ(Bytes::KiB(1).count(), 1024);
  EXPECT_EQ(Bytes::MiB(1).count(), 1024 * 1024);
  EXPECT_EQ(Bytes::GiB(1).count(), 1024LL * 1024 * 1024);
  EXPECT_EQ(Bytes::GiB(3).gib(), 3.0);
  EXPECT_EQ(Bytes::GiB(1).mib(), 1024.0);
}

TEST(BytesTest, AddSubtractAndScale) {
  Bytes bytes(5);
  bytes += Bytes(7);
  bytes -= Bytes(2);
  EXPECT_EQ(bytes, Bytes(10));
  EXPECT_EQ(bytes * 3 - Bytes(1), Bytes(29));
}

// 450e9 B/s is 450 B/ns.
TEST(TransferTimeTest, WholeNanosecondsStayWhole) {
  EXPECT_EQ(TransferTime(Bytes(450), BytesPerSecond(450'000'000'000)).ns(), 1);
  EXPECT_EQ(TransferTime(Bytes(900'000), BytesPerSecond(450'000'000'000)).ns(), 2'000);
}

TEST(TransferTimeTest, FractionsRoundUp) {
  EXPECT_EQ(TransferTime(Bytes(1), BytesPerSecond(450'000'000'000)).ns(), 1);
  EXPECT_EQ(TransferTime(Bytes(451), BytesPerSecond(450'000'000'000)).ns(), 2);
}

TEST(TransferTimeTest, NothingTakesLongerThanTheLongest) {
  EXPECT_EQ(TransferTime(Bytes(INT64_MAX), BytesPerSecond(1)), kLongest);
  EXPECT_EQ(TransferTime(Bytes(1), BytesPerSecond(0)), kLongest);
  EXPECT_EQ(TransferTime(Bytes(0), BytesPerSecond(0)), kLongest) << "no number";
  EXPECT_EQ(RoundedUpNs(-1e300), kLongest * -1);
}

TEST(TransferTimeTest, NothingTakesNoTime) {
  EXPECT_EQ(TransferTime(Bytes(0), BytesPerSecond(1)).ns(), 0);
}

// 16 GB at 1 GB/s: the product 16e9 * 1e9 exceeds 64 bits, the quotient does not.
TEST(TransferTimeTest, LargeTransfersDoNotOverflow) {
  EXPECT_EQ(TransferTime(Bytes(16'000'000'000), BytesPerSecond(1'000'000'000)).ns(),
            16'000'000'000);
}

TEST(DivideUpTest, CountsAPartThatIsNotFull) {
  EXPECT_EQ(DivideUp(0, 128), 0);
  EXPECT_EQ(DivideUp(1, 128), 1);
  EXPECT_EQ(DivideUp(128, 128), 1);
  EXPECT_EQ(DivideUp(129, 128), 2);
}

TEST(RoundUpTest, IsTheNextMultiple) {
  EXPECT_EQ(RoundUp(0, 512), 0);
  EXPECT_EQ(RoundUp(1, 512), 512);
  EXPECT_EQ(RoundUp(512, 512), 512);
  EXPECT_EQ(RoundUp(513, 512), 1024);
}

TEST(IdTest, DefaultIsNone) {
  EXPECT_TRUE(OpId().is_none());
  EXPECT_EQ(OpId(), OpId::None());
  EXPECT_FALSE(OpId(0).is_none());
}

TEST(IdTest, OrderIsThatOfIndicesWithNoneLast) {
  EXPECT_LT(OpId(1), OpId(2));
  EXPECT_LT(OpId(4'000'000'000), OpId::None());
}

// An op cannot be used where a storage is meant: neither conversion nor comparison exists.
static_assert(!std::is_convertible_v<OpId, StorageId>);
static_assert(!std::is_constructible_v<StorageId, OpId>);
static_assert(!std::is_convertible_v<std::size_t, OpId>);

}  // namespace
}  // namespace dcsim
