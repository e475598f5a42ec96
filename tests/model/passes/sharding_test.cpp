#include "model/passes/sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"

namespace dcsim {
namespace {

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
  EXPECT_THAT(groups[0].params, testing::ElementsAre(ParamId(2), ParamId(4), ParamId(0)));
  EXPECT_THAT(groups[1].params, testing::ElementsAre(ParamId(1), ParamId(3)));
}

TEST(FlatGroupsTest, CountsAllAndTrainableElements) {
  const auto groups = FlatGroups(MixedParams());
  EXPECT_EQ(groups[0].elements, 3 + 11 + 5);
  EXPECT_EQ(groups[0].trainable, 11 + 5);
  EXPECT_EQ(groups[1].elements, 7 + 2);
  EXPECT_EQ(groups[1].trainable, 7);
}

// 16 trainable elements over 3 ranks: padded to a multiple of 6, 18, a third of it each.
TEST(PartitionElementsTest, FlatTensorIsPaddedToTwiceTheRanks) {
  const Graph graph = MixedParams();
  EXPECT_EQ(PartitionElements(graph, FlatGroups(graph)[0], 3, false), 6);
}

// ceil(11 / 3) + ceil(5 / 3)
TEST(PartitionElementsTest, ByParameterItIsTheSumOfShards) {
  const Graph graph = MixedParams();
  EXPECT_EQ(PartitionElements(graph, FlatGroups(graph)[0], 3, true), 4 + 2);
}

ScheduleOptions Options(int stage, ReduceCollective reduce) {
  ScheduleOptions options;
  options.stage = stage;
  options.reduce_collective = reduce;
  return options;
}

TEST(CutByParameterTest, Zero3AndReduceScatterCutEachParameter) {
  EXPECT_TRUE(CutByParameter(Options(3, ReduceCollective::kAllReduce)));
  EXPECT_TRUE(CutByParameter(Options(1, ReduceCollective::kReduceScatter)));
  EXPECT_FALSE(CutByParameter(Options(2, ReduceCollective::kAllReduce)));
}

// Shards of 11, 5 and 3 elements: 4 + 2 + 1.
TEST(WeightElementsTest, Zero3KeepsShardsOfAllParameters) {
  const Graph graph = MixedParams();
  EXPECT_EQ(
      WeightElements(graph, FlatGroups(graph)[0], Options(3, ReduceCollective::kAllReduce), 3), 7);
}

// 16 trainable elements padded to 18, and the 3 frozen ones.
TEST(WeightElementsTest, FlatTensorIsPaddedBehindItsTrainablePart) {
  const Graph graph = MixedParams();
  EXPECT_EQ(
      WeightElements(graph, FlatGroups(graph)[0], Options(1, ReduceCollective::kAllReduce), 3), 21);
}

// 3 * 4 + 3 * 2 for the trainable parameters, whose updates are gathered one by one; 3 as they are.
TEST(WeightElementsTest, ReduceScatterPadsEachTrainableParameter) {
  const Graph graph = MixedParams();
  EXPECT_EQ(
      WeightElements(graph, FlatGroups(graph)[0], Options(2, ReduceCollective::kReduceScatter), 3),
      21);
}

}  // namespace
}  // namespace dcsim
