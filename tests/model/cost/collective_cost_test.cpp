#include "model/cost/collective_cost.h"

#include <gtest/gtest.h>

#include "model/cost/ring_time.h"
#include "tests/model/machine/cluster_document.h"
#include "tests/support/row_name.h"
#include "tests/support/source_folder.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

struct Case {
  const char* name;
  CollectiveKind kind;
  std::int64_t payload_bytes;
  int ranks;
  std::int64_t ns;
  Source source;
};

class CollectiveTimeTest : public testing::TestWithParam<Case> {};

TEST_P(CollectiveTimeTest, IsDerived) {
  const Case& row = GetParam();
  const Estimate estimate =
      CollectiveTime(TestCluster(), row.kind, Bytes(row.payload_bytes), row.ranks);
  EXPECT_EQ(estimate.time.ns(), row.ns);
  EXPECT_EQ(estimate.source, row.source);
}

constexpr auto kGather = CollectiveKind::kAllGather;
constexpr auto kScatter = CollectiveKind::kReduceScatter;
constexpr auto kReduce = CollectiveKind::kAllReduce;

// All-gather over 4 ranks: 1 MB 20 us, 3 MB 40 us, 7 MB 60 us.
//   half-way from 1 to 3 MB          (20 + 40) / 2 = 30 us
//   a quarter of the way from 3 to 7 40 + (60 - 40) / 4 = 45 us
//   one byte behind 3 MB             40,000 + 1 * 20,000 / 4e6 = 40,000.005 ns, rounded up
//   above, 9 MB                      60 + (9 - 7) * (60 - 40) / (7 - 3) = 70 us
//   below, 0.5 MB                    RingTime at no bytes is 6 + 3 * 1 = 9 us; half-way to 20: 14.5
//   nothing                          9 us
// Reduce-scatter has one point, 2 MB 30 us: above it the time grows with the size, 5 MB 75 us.
INSTANTIATE_TEST_SUITE_P(
    Table,
    CollectiveTimeTest,
    testing::Values(Case{"AtAPoint", kGather, 3'000'000, 4, 40'000, Source::kMeasured},
                    Case{"AtTheFirst", kGather, 1'000'000, 4, 20'000, Source::kMeasured},
                    Case{"AtTheLast", kGather, 7'000'000, 4, 60'000, Source::kMeasured},
                    Case{"HalfWay", kGather, 2'000'000, 4, 30'000, Source::kInterpolated},
                    Case{"AQuarterOfTheWay", kGather, 4'000'000, 4, 45'000, Source::kInterpolated},
                    Case{"RoundedUp", kGather, 3'000'001, 4, 40'001, Source::kInterpolated},
                    Case{"Above", kGather, 9'000'000, 4, 70'000, Source::kEstimated},
                    Case{"Below", kGather, 500'000, 4, 14'500, Source::kEstimated},
                    Case{"Nothing", kGather, 0, 4, 9'000, Source::kEstimated},
                    Case{"AboveTheOnlyPoint", kScatter, 5'000'000, 4, 75'000, Source::kEstimated}),
    RowName());

// No table: latency + steps * hop + wire / bandwidth.
//   all-reduce, 2 ranks of one node, 4 MB: 6 + 2 * 1 us + (2/2 * 4 MB) / 400 GB/s = 8 + 10 = 18 us
//   all-reduce, 4 ranks of one node, 4 MB: 6 + 6 * 1 us + (6/4 * 4 MB) / 400 GB/s = 12 + 15 us
//   all-gather, 8 ranks of two nodes, 4 MB: 10 + 7 * 2 us + (7/8 * 4 MB) / 50 GB/s = 24 + 70 us
//   the same with 3 bytes: wire 2.625, sent 3 bytes: 24 us + 0.06 ns, rounded up
INSTANTIATE_TEST_SUITE_P(
    Ring,
    CollectiveTimeTest,
    testing::Values(Case{"TwoRanks", kReduce, 4'000'000, 2, 18'000, Source::kEstimated},
                    Case{"ReduceTakesTwoPasses", kReduce, 4'000'000, 4, 27'000, Source::kEstimated},
                    Case{"TwoNodes", kGather, 4'000'000, 8, 94'000, Source::kEstimated},
                    Case{"RoundedUp", kGather, 3, 8, 24'001, Source::kEstimated}),
    RowName());

// One rank copies on its own GPU: 2 * payload at 1 TB/s, and at least the shortest kernel's 2 us.
// An all-reduce is in place.
INSTANTIATE_TEST_SUITE_P(
    OneRank,
    CollectiveTimeTest,
    testing::Values(Case{"Copies", kGather, 4'000'000, 1, 8'000, Source::kEstimated},
                    Case{"TakesAKernel", kScatter, 2, 1, 2'000, Source::kEstimated},
                    Case{"HasNothingToReduce", kReduce, 4'000'000, 1, 0, Source::kEstimated}),
    RowName());

// Three copies of 4 MB in all, each further one behind the pace of memory work.
TEST(GroupTimeTest, OneRankCopiesCallByCall) {
  Cluster cluster = TestCluster();
  cluster.gpu.gaps.memory = Duration::FromUs(3);
  const std::vector<CollectivePart> parts = {
      {Bytes(1'000'000), Bytes(0)}, {Bytes(2'999'998), Bytes(0)}, {Bytes(2), Bytes(0)}};
  EXPECT_EQ(GroupTime(cluster, kScatter, parts, 1).time.ns(), 8'000 + 2 * 3'000);
  EXPECT_EQ(GroupTime(cluster, kReduce, parts, 1).time.ns(), 0);
}

// The table of 4 ranks alone: 45 us for 4 MB, 9 of them latency, so 36 * 4/3 = 48 us for a whole
// payload. Over 2 ranks a hop of the ring less, two in all: 7 + 48 / 2; over 3: 8 + 48 * 2/3.
INSTANTIATE_TEST_SUITE_P(
    OtherRanks,
    CollectiveTimeTest,
    testing::Values(Case{"Fewer", kGather, 4'000'000, 2, 31'000, Source::kEstimated},
                    Case{"OneFewer", kGather, 4'000'000, 3, 40'000, Source::kEstimated}),
    RowName());

/// One node of eight GPUs with tables over 2 and 4: 4 us and 6 us for next to nothing, 24 us and
/// 33 us for 4 MB.
Cluster ClusterOfEight() {
  Cluster cluster = TestCluster();
  cluster.nodes = 1;
  cluster.gpus_per_node = 8;
  const auto table = [](int ranks, std::int64_t first, std::int64_t last) {
    return CollectiveTable{
        kGather,
        ranks,
        /*calls=*/1,
        {{Bytes(1000), Duration::FromUs(first)}, {Bytes(4'000'000), Duration::FromUs(last)}}};
  };
  cluster.collectives = {table(2, 4, 24), table(4, 6, 33)};
  return cluster;
}

// A whole payload takes (24 - 4) * 2 = 40 us over 2 ranks and (33 - 6) * 4/3 = 36 us over 4. On a
// straight line over 1/n^2 (1/4, 1/16) that is 35 us over 8 (1/64) and 40 - 80/27 us over 3 (1/9).
// The start goes up by 1 us a rank: 10 us over 8, 5 us over 3. Then 10 + 35 * 7/8 and
// 5 + (40 - 80/27) * 2/3 us.
TEST(OtherRanksTest, TablesOfTwoNumbersOfRanksGiveOthers) {
  const auto time = [](int ranks) {
    return CollectiveTime(ClusterOfEight(), kGather, Bytes(4'000'000), ranks);
  };
  EXPECT_EQ(time(8).time.ns(), 40'625);
  EXPECT_EQ(time(3).time.ns(), 29'691);
  EXPECT_EQ(time(8).source, Source::kEstimated);
}

// Links between nodes are another matter.
TEST(OtherRanksTest, SeveralNodesTakeTheRing) {
  Cluster cluster = ClusterOfEight();
  cluster.nodes = 2;
  cluster.gpus_per_node = 4;
  cluster.inter_node = TestCluster().inter_node;
  EXPECT_EQ(CollectiveTime(cluster, kGather, Bytes(4'000'000), 8).time,
            RingTime(cluster, kGather, Bytes(4'000'000), 8));
}

/// Eight ranks of ClusterOfEight on nodes of so many GPUs, over the link of TestCluster.
Cluster NodesOfGpus(int gpus_per_node) {
  Cluster cluster = ClusterOfEight();
  cluster.nodes = 8 / gpus_per_node;
  cluster.gpus_per_node = gpus_per_node;
  cluster.inter_node = TestCluster().inter_node;
  return cluster;
}

class NodesTest : public testing::TestWithParam<int> {};

// A table of two or four ranks was measured on one node: it prices no group that spans several,
// whose link decides. 94 us is RingTime over two nodes and more (Ring, TwoNodes).
TEST_P(NodesTest, TableOfOneNodePricesNoGroupOfSeveral) {
  const Cluster cluster = NodesOfGpus(GetParam());
  const Estimate over_nodes = CollectiveTime(cluster, kGather, Bytes(4'000'000), 8);
  EXPECT_EQ(over_nodes.time.ns(), 94'000);
  EXPECT_TRUE(over_nodes.of_link);
  for (const int ranks : {2, 4}) {
    const Estimate time = CollectiveTime(cluster, kGather, Bytes(4'000'000), ranks);
    EXPECT_EQ(time.of_link, ranks > GetParam()) << ranks;
    EXPECT_EQ(time.source == Source::kMeasured, ranks <= GetParam()) << ranks;
  }
}

INSTANTIATE_TEST_SUITE_P(GpusPerNode, NodesTest, testing::Values(1, 2, 4));

// Measured over two nodes of four: it prices eight ranks that lie so, and not on one node.
TEST(OtherRanksTest, TableOfTwoNodesPricesGroupsOfTwo) {
  Cluster cluster = NodesOfGpus(4);
  CollectiveTable table = cluster.collectives[0];
  table.ranks = 8;
  table.nodes = 2;
  cluster.collectives.push_back(table);
  EXPECT_EQ(CollectiveTime(cluster, kGather, Bytes(4'000'000), 8).time, table.points.back().time);
  cluster.gpus_per_node = 8;
  EXPECT_NE(CollectiveTime(cluster, kGather, Bytes(4'000'000), 8).time, table.points.back().time);
}

// 1,000 and 4,000,000 bytes over 2 and 4 ranks were measured.
TEST(OtherRanksTest, DistanceIsInPowersOfTwoToTheNearestMeasurement) {
  const auto distance = [](std::int64_t bytes, int ranks) {
    return CollectiveTime(ClusterOfEight(), kGather, Bytes(bytes), ranks).distance;
  };
  EXPECT_EQ(distance(4'000'000, 4).sizes, 0);
  EXPECT_EQ(distance(2'000'000, 4).sizes, 1);
  EXPECT_EQ(distance(4'000, 4).sizes, 2);
  EXPECT_EQ(distance(250, 4).sizes, 2);
  EXPECT_EQ(distance(32'000'000, 4).sizes, 3);
  EXPECT_EQ(distance(4'000'000, 4).ranks, 0);
  EXPECT_EQ(distance(4'000'000, 8).ranks, 1);
  EXPECT_EQ(distance(16'000'000, 8).sizes, 2);
}

// H200s: what 2 and 4 took by dc-run calibrate, against 8 on another machine (h200-8.yaml).
TEST(OtherRanksTest, EightGpusFollowFromTwoAndFour) {
  const std::string folder = SourceFolder() + "/configs/clusters/";
  Cluster cluster = LoadCluster(folder + "h200-4.yaml");
  const Cluster two = LoadCluster(folder + "h200-2.yaml");
  cluster.gpus_per_node = 8;
  cluster.collectives.insert(cluster.collectives.end(), two.collectives.begin(),
                             two.collectives.end());
  std::size_t compared = 0;
  for (const CollectiveTable& table : LoadCluster(folder + "h200-8.yaml").collectives) {
    for (const CollectivePoint& point : table.points) {
      if (table.ranks == 8 && point.payload >= Bytes::MiB(64)) {
        const Estimate estimate = CollectiveTime(cluster, table.kind, point.payload, 8);
        const auto measured = static_cast<double>(point.time.ns());
        EXPECT_NEAR(static_cast<double>(estimate.time.ns()), measured, 0.026 * measured)
            << CollectiveKindName(table.kind) << ", " << point.payload.count() << " B";
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 9U);
}

// A slow link inside the nodes holds a ring over both nodes back as well:
// 10 + 7 * 2 us + (7/8 * 4 MB) / 25 GB/s = 24 + 140 us.
TEST(RingTimeTest, RingOverNodesTakesTheSlowerLink) {
  Cluster cluster = TestCluster();
  cluster.intra_node.bus_bandwidth = BytesPerSecond(25'000'000'000);
  EXPECT_EQ(RingTime(cluster, kGather, Bytes(4'000'000), 8).ns(), 164'000);
}

// A table whose last time is below the one before it (noise): no slope, at the larger of the two.
TEST(CollectiveTimeTest, FallingEndOfATableIsContinuedFlat) {
  Cluster cluster = TestCluster();
  cluster.collectives[0].points.back().time = Duration::FromUs(39);
  EXPECT_EQ(CollectiveTime(cluster, kGather, Bytes(9'000'000), 4).time.ns(), 40'000);
}

// A first point that took less than the ring's latency: nothing cannot take longer.
TEST(CollectiveTimeTest, FastFirstPointBoundsWhatIsBelow) {
  Cluster cluster = TestCluster();
  cluster.collectives[0].points.front().time = Duration::FromUs(5);
  EXPECT_EQ(CollectiveTime(cluster, kGather, Bytes(500'000), 4).time.ns(), 5'000);
}

/// The all-gather's table again for groups of 4 calls (twice the times) and of 16 (three times).
Cluster ClusterWithGroups() {
  Cluster cluster = TestCluster();
  const CollectiveTable single = cluster.collectives[0];
  for (const int calls : {16, 4}) {
    CollectiveTable table = single;
    table.calls = calls;
    for (CollectivePoint& point : table.points) {
      point.time = point.time * (calls == 4 ? 2 : 3);
    }
    cluster.collectives.push_back(table);
  }
  return cluster;
}

struct GroupCase {
  const char* name;
  double calls;
  std::int64_t ns;
  Source source;
};

class GroupTimeTest : public testing::TestWithParam<GroupCase> {};

// 3 MB: 40 us in one call, 80 in 4, 120 in 16.
//   2 calls   log 2 / log 4 = half-way from 1 to 4: 60 us
//   8 calls   log 2 / log 4 = half-way from 4 to 16: 100 us
//   64 calls  as the table with the most calls
TEST_P(GroupTimeTest, LiesBetweenTheTablesOfFewerAndOfMoreCalls) {
  const GroupCase& row = GetParam();
  const Estimate estimate =
      CollectiveTime(ClusterWithGroups(), kGather, Bytes(3'000'000), 4, {row.calls, 0, 0, {}});
  EXPECT_EQ(estimate.time.ns(), row.ns);
  EXPECT_EQ(estimate.source, row.source);
}

INSTANTIATE_TEST_SUITE_P(Group,
                         GroupTimeTest,
                         testing::Values(GroupCase{"One", 1, 40'000, Source::kMeasured},
                                         GroupCase{"Two", 2, 60'000, Source::kInterpolated},
                                         GroupCase{"Four", 4, 80'000, Source::kMeasured},
                                         GroupCase{"Eight", 8, 100'000, Source::kInterpolated},
                                         GroupCase{"Many", 64, 120'000, Source::kMeasured}),
                         RowName());

TEST(CollectiveTimeTest, GroupTakesTheSingleCallsTableWhereThereIsNoOther) {
  EXPECT_EQ(CollectiveTime(TestCluster(), kGather, Bytes(3'000'000), 4, {8, 0, 0, {}}).time.ns(),
            40'000);
}

// Sizes 1, 1, 1, 1: 4^2 / 4. Sizes 6, 1, 1: 8^2 / 38. Nothing at all counts as one call.
// 16 MiB on two ranks take 100 us: half of it 1.5 times as long, beyond the smallest payload's
// time.
TEST(UnalignedTimeTest, IsLongerBeyondThatOfASmallPayload) {
  Cluster cluster = TestCluster();
  cluster.collectives = {
      {.kind = CollectiveKind::kReduceScatter,
       .ranks = 2,
       .points = {{Bytes(2048), Duration::FromUs(10)}, {Bytes::MiB(16), Duration::FromUs(100)}}}};
  cluster.unaligned_collectives = {1, 1.5, 1};
  const auto time = [&](CollectiveKind kind, double unaligned) {
    return CollectiveTime(cluster, kind, Bytes::MiB(16), 2, {1, unaligned, 0, {}}).time.ns();
  };
  const auto start = CollectiveTime(cluster, CollectiveKind::kReduceScatter, Bytes(1), 2).time.ns();
  EXPECT_EQ(time(CollectiveKind::kReduceScatter, 0), 100'000);
  EXPECT_EQ(time(CollectiveKind::kReduceScatter, 0.5), 100'000 + (100'000 - start + 2) / 4);
  EXPECT_EQ(time(CollectiveKind::kAllGather, 0.5), time(CollectiveKind::kAllGather, 0));
}

std::int64_t TimeOfGroup(const Cluster& cluster, std::span<const CollectivePart> parts) {
  return GroupTime(cluster, kGather, parts, 2).time.ns();
}

// 16 MiB take 100 us, next to nothing 10. Shards that are shifted, half of the payload: half of 9
// us and of a fifth of 90. Up to 2 MiB nothing.
TEST(ShiftedShardTest, GathersTakeLonger) {
  Cluster cluster = TestCluster();
  cluster.collectives = {
      {.ranks = 2,
       .points = {{Bytes(1), Duration::FromUs(10)}, {Bytes::MiB(16), Duration::FromUs(100)}}}};
  const std::vector<CollectivePart> parts = {{Bytes::MiB(8), Bytes(), true},
                                             {Bytes::MiB(8), Bytes(), false}};
  EXPECT_EQ(TimeOfGroup(cluster, parts), 100'000);
  cluster.shifted_shard_gathers = {Bytes::MiB(2), Duration::FromUs(9), 1.2};
  EXPECT_EQ(TimeOfGroup(cluster, parts), 100'000 + 4'500 + 9'000);
  EXPECT_EQ(
      GroupTime(cluster, CollectiveKind::kAllGather, {{{Bytes::MiB(2), Bytes(), true}}}, 2).time,
      GroupTime(cluster, CollectiveKind::kAllGather, {{{Bytes::MiB(2), Bytes(), false}}}, 2).time);
}

/// 2 MiB take 104 us, next to nothing 4; in groups of 64 calls of 2 KiB each, of which NCCL lays
/// three on each of 24 channels, 12 us: 4 us for each call more on a channel.
Cluster ClusterWithChannels() {
  Cluster cluster = TestCluster();
  cluster.collective_channels = 24;
  cluster.collectives = {{.ranks = 2,
                          .points = {{Bytes(1), Duration::FromUs(4)},
                                     {Bytes::KiB(2), Duration::FromUs(4)},
                                     {Bytes::MiB(2), Duration::FromUs(104)}}},
                         {.ranks = 2,
                          .calls = 64,
                          .points = {{Bytes::KiB(128), Duration::FromUs(12)},
                                     {Bytes::MiB(2), Duration::FromUs(104)}}}};
  return cluster;
}

// 56 KiB are four cells of 16 KiB, on four of 24 channels; where nobody says how many there are,
// whatever comes takes all.
TEST(GroupDemandTest, IsTheShareOfTheChannels) {
  Cluster cluster = ClusterWithChannels();
  const CollectivePart part{Bytes::KiB(56), Bytes(0)};
  EXPECT_EQ(GroupDemand(cluster, kGather, {&part, 1}, 4), Share::Of(4, 24));
  cluster.collective_channels = 0;
  EXPECT_EQ(GroupDemand(cluster, kGather, {&part, 1}, 4), Share::All());
}

// One rank copies 8 MB in 16 us at 1 TB/s, and a launch of 2 us lies between the two parts.
TEST(GroupDemandTest, OfOneRankIsTheShareInWhichBytesMove) {
  const CollectivePart part{Bytes(4'000'000), Bytes(0)};
  const std::vector<CollectivePart> parts{part, part};
  EXPECT_EQ(GroupDemand(ClusterWithChannels(), kGather, {&part, 1}, 1), Share::All());
  EXPECT_EQ(GroupDemand(ClusterWithChannels(), kGather, parts, 1), Share::Of(16, 18));
}

/// A call of 2 MiB and 40 short ones: 168 cells of 16 KiB.
std::vector<CollectivePart> OneLongCall() {
  std::vector<CollectivePart> parts(40, {Bytes::KiB(1), Bytes(0)});
  parts.push_back({Bytes::MiB(2), Bytes(0)});
  return parts;
}

// Seven cells a channel: as many short calls on the first, 28 us, which the long one outlasts.
TEST(ShortCallsTest, HideBesideALongCall) {
  Cluster cluster = ClusterWithChannels();
  const std::int64_t time = TimeOfGroup(cluster, OneLongCall());
  cluster.collective_channels = 0;  // not known
  EXPECT_EQ(TimeOfGroup(cluster, OneLongCall()), time);
}

// On three channels 56 cells each: the first has all short calls and 16 of the long one's 128
// cells, whose time is its share of the bytes, times three. The table's 64 calls are 22 on the
// first channel there, so that a call more takes 8 us / 21.
TEST(ShortCallsTest, AGroupEndsWhenItsFirstChannelDoes) {
  Cluster cluster = ClusterWithChannels();
  cluster.collective_channels = 0;
  const std::int64_t alike = TimeOfGroup(cluster, OneLongCall());
  cluster.collective_channels = 3;
  const double short_call = 8000.0 / 21;
  const double share = 16.0 / 128 * (2 << 20) / (40 * 1024 + (2 << 20));
  const double first_channel =
      4000 - short_call + 40 * short_call + 3 * share * static_cast<double>(alike - 4000);
  ASSERT_LT(first_channel, static_cast<double>(alike));
  EXPECT_EQ(TimeOfGroup(cluster, OneLongCall()), alike);
  cluster.collectives[1].points[0].time = Duration::FromUs(104);  // 100 us / 21
  const double slower = 4000 + 39 * 100'000.0 / 21 + 3 * share * static_cast<double>(alike - 4000);
  EXPECT_NEAR(static_cast<double>(TimeOfGroup(cluster, OneLongCall())), slower, 50);
}

// The same group without eight of its short calls fits into the kernel's arguments.
TEST(ShortCallsTest, AGroupOf32CallsHasNoneThatCost) {
  Cluster cluster = ClusterWithChannels();
  cluster.collective_channels = 3;
  cluster.collectives[1].points[0].time = Duration::FromUs(104);
  const std::vector<CollectivePart> parts = OneLongCall();
  const std::span<const CollectivePart> fits = std::span(parts).last(32);
  EXPECT_LT(TimeOfGroup(cluster, fits), 110'000);
  EXPECT_GT(TimeOfGroup(cluster, std::span(parts).last(33)), 130'000);
}

// 64 alike calls of 2 KiB are what the table says, to the nanosecond.
TEST(ShortCallsTest, AGroupOfATableTakesTheTablesTime) {
  const std::vector<CollectivePart> parts(64, {Bytes::KiB(2), Bytes(0)});
  EXPECT_EQ(TimeOfGroup(ClusterWithChannels(), parts), 12'000);
}

// 230 norms and biases of 3 KiB beside 114 products of 3.46 MB (212 cells), much like
// convnext-large's gradients: 24,398 cells, 1,016.6 a channel, so the first one has all short calls
// and 787 cells of the others. A call more on a channel takes (10,080 - 3,520) / 2 ns by the
// tables. convnext-large's reduction took 1.23 ms in a traced step, where alike calls would take
// 0.69.
TEST(ShortCallsTest, NormsAndBiasesOfAModelLengthenItsReduction) {
  const Cluster cluster = LoadCluster(SourceFolder() + "/configs/clusters/h200-2.yaml");
  std::vector<CollectivePart> parts(230, {Bytes::KiB(3), Bytes(0)});
  parts.resize(344, {Bytes(3'460'000), Bytes(0)});
  constexpr auto kKind = CollectiveKind::kReduceScatter;
  Cluster without = cluster;
  without.collective_channels = 0;
  const auto time = [&](const Cluster& with) {
    return static_cast<double>(GroupTime(with, kKind, parts, 2).time.ns()) / 1e6;
  };
  const double alike = time(without);
  EXPECT_GT(alike, 0.6);
  EXPECT_LT(alike, 0.7);
  const double share = 787 * (3'460'000.0 / 212) / (230 * 3072 + 114 * 3'460'000.0);
  const double start = 0.0035;
  EXPECT_NEAR(time(cluster), 230 * 0.00328 + 24 * share * (alike - start), 0.005);
}

// Of 96, 48 and 64 bytes on two ranks: the second's other half begins at 24, the third 8 behind.
TEST(UnalignedShareTest, TensorsAndPartsBeginAtMultiplesOf16) {
  const std::vector<CollectivePart> parts = {
      {Bytes(96), Bytes(32)}, {Bytes(48), Bytes(0)}, {Bytes(64), Bytes(8)}};
  EXPECT_DOUBLE_EQ(UnalignedShare(CollectiveKind::kReduceScatter, parts, 2), 112.0 / 208);
  EXPECT_DOUBLE_EQ(UnalignedShare(CollectiveKind::kAllReduce, parts, 2), 64.0 / 208);
  EXPECT_DOUBLE_EQ(UnalignedShare(CollectiveKind::kAllGather, parts, 2), (24.0 + 64) / 208);
  EXPECT_DOUBLE_EQ(UnalignedShare(CollectiveKind::kAllGather, {}, 2), 0);
}

TEST(AlikeCallsTest, CountsHowMuchAGroupIsSplit) {
  const std::vector<CollectivePart> alike(4, {Bytes(1), Bytes(0)});
  const std::vector<CollectivePart> unlike = {
      {Bytes(6), Bytes(0)}, {Bytes(1), Bytes(0)}, {Bytes(1), Bytes(0)}};
  EXPECT_DOUBLE_EQ(AlikeCalls(alike), 4);
  EXPECT_DOUBLE_EQ(AlikeCalls(unlike), 64.0 / 38);
  EXPECT_DOUBLE_EQ(AlikeCalls({}), 1);
}

TEST(SourceNameTest, IsTheResultsKey) {
  EXPECT_EQ(SourceName(Source::kMeasured), "measured");
  EXPECT_EQ(SourceName(Source::kInterpolated), "interpolated");
  EXPECT_EQ(SourceName(Source::kEstimated), "estimated");
}

}  // namespace
}  // namespace dcsim
