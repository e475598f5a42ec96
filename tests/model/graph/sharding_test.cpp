#include "model/graph/sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"

namespace dcsim {
namespace {

using testing::ElementsAre;

TEST(ShardElementsTest, LastShardIsPadded) {
  EXPECT_EQ(ShardElements(16, 4), 4);
  EXPECT_EQ(ShardElements(17, 4), 5);
  EXPECT_EQ(ShardElements(1, 4), 1);
  EXPECT_EQ(ShardElements(15, 1), 15);
}

TEST(GatheredElementsTest, IsTheShardsOfAllRanks) {
  EXPECT_EQ(GatheredElements(16, 4), 16);
  EXPECT_EQ(GatheredElements(17, 4), 20);
  EXPECT_EQ(GatheredElements(1, 4), 4);
}

/// Two dtypes in turn, one parameter of each frozen.
Graph MixedParams() {
  return ParseGraphText(R"(
graph mixed 1 tokens
param a bfloat16[3] frozen
param b float32[7]
param c bfloat16[11]
param d float32[2] frozen
param e bfloat16[5]
forward
  l: float32[] = my::loss(a, b, c, d, e)
  loss l
)");
}

TEST(FlatGroupsTest, OneForEachDTypeByItsFirstParameter) {
  const auto groups = FlatGroups(MixedParams());
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].dtype, DType::kBFloat16);
  EXPECT_EQ(groups[1].dtype, DType::kFloat32);
}

TEST(FlatGroupsTest, TrainableParametersComeBeforeFrozenOnes) {
  const auto groups = FlatGroups(MixedParams());
  EXPECT_THAT(groups[0].params, ElementsAre(ParamId(2), ParamId(4), ParamId(0)));
  EXPECT_THAT(groups[1].params, ElementsAre(ParamId(1), ParamId(3)));
}

TEST(FlatGroupsTest, CountsAllAndTrainableElements) {
  const auto groups = FlatGroups(MixedParams());
  EXPECT_EQ(groups[0].elements, 3 + 11 + 5);
  EXPECT_EQ(groups[0].trainable, 11 + 5);
  EXPECT_EQ(groups[1].elements, 7 + 2);
  EXPECT_EQ(groups[1].trainable, 7);
}

ScheduleOptions Options(int stage, ReduceCollective reduce) {
  ScheduleOptions options;
  options.stage = stage;
  options.reduce_collective = reduce;
  return options;
}

// 16 trainable elements over 3 ranks: padded to a multiple of 6, 18, a third of it each.
TEST(PartitionElementsTest, FlatTensorIsPaddedToTwiceTheRanks) {
  const Graph graph = MixedParams();
  EXPECT_EQ(
      PartitionElements(graph, FlatGroups(graph)[0], Options(2, ReduceCollective::kAllReduce), 3),
      6);
}

// ceil(11 / 3) + ceil(5 / 3)
TEST(PartitionElementsTest, ByParameterItIsTheSumOfShards) {
  const Graph graph = MixedParams();
  EXPECT_EQ(
      PartitionElements(graph, FlatGroups(graph)[0], Options(3, ReduceCollective::kAllReduce), 3),
      4 + 2);
}

/// Of the first group, laid out.
std::vector<std::int64_t> Offsets(const Graph& graph,
                                  const ScheduleOptions& options,
                                  int ranks = 3) {
  return WeightOffsets(graph, LaidOutGroups(graph, options, ranks)[0], options, ranks);
}

TEST(CutByParameterTest, Zero3AndReduceScatterCutEachParameter) {
  EXPECT_TRUE(CutByParameter(Options(3, ReduceCollective::kAllReduce)));
  EXPECT_TRUE(CutByParameter(Options(1, ReduceCollective::kReduceScatter)));
  EXPECT_FALSE(CutByParameter(Options(2, ReduceCollective::kAllReduce)));
}

// Shards of 11, 5 and 3 elements: 4 + 2 + 1.
TEST(WeightOffsetsTest, Zero3KeepsShardsOfAllParameters) {
  const Graph graph = MixedParams();
  EXPECT_THAT(Offsets(graph, Options(3, ReduceCollective::kAllReduce)), ElementsAre(0, 4, 6, 7));
}

// 16 trainable elements padded to 18, and the 3 frozen ones.
TEST(WeightOffsetsTest, FlatTensorIsPaddedBehindItsTrainablePart) {
  const Graph graph = MixedParams();
  EXPECT_THAT(Offsets(graph, Options(1, ReduceCollective::kAllReduce)), ElementsAre(0, 11, 18, 21));
}

// 3 * 4 + 3 * 2 for the trainable parameters, whose updates are gathered one by one; 3 as they are.
TEST(WeightOffsetsTest, ReduceScatterPadsEachTrainableParameter) {
  const Graph graph = MixedParams();
  EXPECT_THAT(Offsets(graph, Options(2, ReduceCollective::kReduceScatter)),
              ElementsAre(0, 12, 18, 21));
}

// Both bfloat16: 12 and 8 elements are trained, of which the second fills a multiple of 16 bytes; 3
// and 16 are frozen.
Graph OddParams() {
  return ParseGraphText(R"(
graph odd 1 tokens
param a bfloat16[3] frozen
param b bfloat16[12]
param c bfloat16[16] frozen
param d bfloat16[8]
forward
  l: float32[] = my::loss(a, b, c, d)
  loss l
)");
}

TEST(LaidOutGroupsTest, AlignedParametersComeFirst) {
  ScheduleOptions options = Options(1, ReduceCollective::kAllReduce);
  const auto params = [&options] { return LaidOutGroups(OddParams(), options, 3)[0].params; };
  EXPECT_THAT(params(), ElementsAre(ParamId(1), ParamId(3), ParamId(0), ParamId(2)));
  options.align_tensors = true;
  EXPECT_THAT(params(), ElementsAre(ParamId(3), ParamId(1), ParamId(2), ParamId(0)));
}

// Shards of three ranks: 4 of 12 elements, 3 of 8, 6 of 16 and 1 of 3 are none of them whole.
TEST(LaidOutGroupsTest, Zero3LooksAtShards) {
  ScheduleOptions options = Options(3, ReduceCollective::kAllReduce);
  options.align_tensors = true;
  EXPECT_THAT(LaidOutGroups(OddParams(), options, 3)[0].params,
              ElementsAre(ParamId(1), ParamId(3), ParamId(0), ParamId(2)));
  EXPECT_THAT(LaidOutGroups(OddParams(), options, 1)[0].params,
              ElementsAre(ParamId(3), ParamId(1), ParamId(2), ParamId(0)));
}

// 20 trained elements, padded to 24 for three ranks and to 20 for two; frozen ones begin at the
// next multiple of 8.
TEST(WeightOffsetsTest, FrozenParametersBeginAligned) {
  ScheduleOptions options = Options(1, ReduceCollective::kAllReduce);
  options.align_tensors = true;
  EXPECT_THAT(Offsets(OddParams(), options), ElementsAre(0, 8, 24, 40, 43));
  EXPECT_THAT(Offsets(OddParams(), options, 2), ElementsAre(0, 8, 24, 40, 43));
  options.align_tensors = false;
  EXPECT_THAT(Offsets(OddParams(), options, 2), ElementsAre(0, 12, 20, 23, 39));
}

// The second trained parameter begins at the next multiple of 8 elements behind the 12 of the
// first: 24 elements, 8 for each of three ranks. Behind the last there is no padding, nor before
// frozen ones.
TEST(WeightOffsetsTest, PaddingLetsEachTrainedParameterBeginAligned) {
  ScheduleOptions options = Options(1, ReduceCollective::kAllReduce);
  options.parameter_alignment = true;
  EXPECT_THAT(Offsets(OddParams(), options), ElementsAre(0, 16, 24, 27, 43));
  EXPECT_EQ(PartitionElements(OddParams(), FlatGroups(OddParams())[0], options, 3), 8);
  EXPECT_EQ(PartitionElements(OddParams(), FlatGroups(OddParams())[0], options, 5), 6);
}

TEST(HasUnalignedParamsTest, LooksAtParametersAndShards) {
  EXPECT_TRUE(HasUnalignedParams(OddParams(), 1));
  const Graph graph = ParseGraphText(R"(
graph whole 1 tokens
param a bfloat16[16]
param b float32[8]
forward
  l: float32[] = my::loss(a, b)
  loss l
)");
  EXPECT_FALSE(HasUnalignedParams(graph, 2));
  EXPECT_TRUE(HasUnalignedParams(graph, 4));
}

}  // namespace
}  // namespace dcsim
