// Placements worked out by hand from NCCL 2.28.9's scheduleCollTasksToPlan: cells of 16 KiB.

#include "model/cost/group_channels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dcsim {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

constexpr auto kGather = CollectiveKind::kAllGather;

// 64 cells of traffic on 24 channels are 2.7 each, so a channel takes three calls.
TEST(FirstChannelTest, CallsOfAFewKiBCountAsACellEach) {
  const std::vector<Bytes> calls(64, Bytes::KiB(2));
  EXPECT_THAT(FirstChannel(kGather, calls, 24), AllOf(SizeIs(3), Each(Bytes::KiB(2))));
}

// 10 cells and 2 * 1536 on 24 channels: 128.4 each. Of the products 119 cells come first, 1,904
// KiB.
TEST(FirstChannelTest, ShortCallsComeFirstAndShareTheChannelWithALongOne) {
  std::vector<Bytes> calls(10, Bytes::KiB(4));
  calls.insert(calls.begin(), 2, Bytes::MiB(24));
  const auto first = FirstChannel(kGather, calls, 24);
  ASSERT_THAT(first, SizeIs(11));
  EXPECT_THAT(std::vector<Bytes>(first.begin(), first.begin() + 10), Each(Bytes::KiB(4)));
  EXPECT_EQ(first.back(), Bytes::KiB(1904));
}

TEST(FirstChannelTest, FewShortCallsHaveAChannelEach) {
  EXPECT_THAT(FirstChannel(kGather, std::vector<Bytes>(4, Bytes::KiB(1)), 24),
              ElementsAre(Bytes::KiB(1)));
}

// 1 MiB moves 2 MiB: 128 cells on two channels. As a gather it has 64.
TEST(FirstChannelTest, BytesOfAnAllReduceCountTwice) {
  const std::vector<Bytes> calls = {Bytes::KiB(8), Bytes::KiB(8), Bytes::KiB(16)};
  EXPECT_THAT(FirstChannel(CollectiveKind::kAllReduce, calls, 2),
              ElementsAre(Bytes::KiB(8), Bytes::KiB(8)));
  EXPECT_THAT(FirstChannel(kGather, calls, 2), ElementsAre(Bytes::KiB(8), Bytes::KiB(8)));
  const std::vector<Bytes> longer = {Bytes::KiB(8), Bytes::KiB(16), Bytes::KiB(40)};
  EXPECT_THAT(FirstChannel(CollectiveKind::kAllReduce, longer, 2),
              ElementsAre(Bytes::KiB(8), Bytes::KiB(16), Bytes::KiB(8)));
  EXPECT_THAT(FirstChannel(kGather, longer, 2),
              ElementsAre(Bytes::KiB(8), Bytes::KiB(16), Bytes(40 * 1024 / 3)));
}

TEST(FirstChannelTest, OneChannelTakesAll) {
  EXPECT_THAT(FirstChannel(kGather, std::vector<Bytes>{Bytes::MiB(2), Bytes::KiB(1)}, 1),
              ElementsAre(Bytes::KiB(1), Bytes::MiB(2)));
}

// 16 KiB of traffic a channel: a norm takes one, 100 KiB seven, whatever is large all of them.
TEST(ChannelsTakenTest, FollowTheBytes) {
  EXPECT_EQ(ChannelsTaken(kGather, std::vector<Bytes>{Bytes::KiB(8)}, 24), 1);
  EXPECT_EQ(ChannelsTaken(kGather, std::vector<Bytes>{Bytes::KiB(100)}, 24), 7);
  EXPECT_EQ(ChannelsTaken(kGather, std::vector<Bytes>{Bytes::MiB(1)}, 24), 24);
  EXPECT_EQ(ChannelsTaken(CollectiveKind::kAllReduce, std::vector<Bytes>{Bytes::KiB(100)}, 24), 13);
}

TEST(ChannelsTakenTest, EachCallOfAGroupTakesOne) {
  EXPECT_EQ(ChannelsTaken(kGather, std::vector<Bytes>(3, Bytes::KiB(1)), 24), 3);
  EXPECT_EQ(ChannelsTaken(kGather, std::vector<Bytes>(30, Bytes::KiB(1)), 24), 24);
}

TEST(FirstChannelTest, NothingIsNowhere) {
  EXPECT_THAT(FirstChannel(kGather, {}, 24), SizeIs(0));
}

}  // namespace
}  // namespace dcsim
