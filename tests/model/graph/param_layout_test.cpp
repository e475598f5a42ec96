#include "model/graph/param_layout.h"

#include <array>

#include <gtest/gtest.h>

#include "model/ir/graph_text.h"

namespace dcsim {
namespace {

/// 3, 8 and 5 trainable elements, behind one another, and a frozen parameter.
Graph ThreeParams() {
  return ParseGraphText(R"(
graph three 1 tokens
param a bfloat16[3]
param b bfloat16[8]
param c bfloat16[5]
param d bfloat16[2] frozen
forward
  l: float32[] = my::loss(a, b, c, d)
  loss l
)");
}

ScheduleOptions Stage(int stage) {
  ScheduleOptions options;
  options.stage = stage;
  return options;
}

const std::array<ParamId, 3> all_params = {ParamId(0), ParamId(1), ParamId(2)};

// 16 elements in two partitions: b's first 5 elements are rank 0's, its last 3 rank 1's.
TEST(ParamLayoutTest, AFlatTensorIsCutAnywhere) {
  const ParamLayout layout(ThreeParams(), Stage(1), 2);
  const OwnedPart first = layout.owned(ParamId(1), 0);
  EXPECT_EQ(first.begin, 0);
  EXPECT_EQ(first.end, 5);
  EXPECT_EQ(first.partition, 3);
  const OwnedPart second = layout.owned(ParamId(1), 1);
  EXPECT_EQ(second.begin, 5);
  EXPECT_EQ(second.end, 8);
  EXPECT_EQ(second.partition, 0);
}

TEST(ParamLayoutTest, ARankOwnsWhatLiesInItsPartition) {
  const ParamLayout layout(ThreeParams(), Stage(1), 2);
  EXPECT_EQ(layout.owned(all_params, 0).parts, 2U);
  EXPECT_EQ(layout.owned(all_params, 0).elements, 8);
  EXPECT_EQ(layout.owned(all_params, 1).parts, 2U);
  const std::vector<ParamId> last = {ParamId(2)};
  EXPECT_EQ(layout.owned(last, 0).parts, 0U);
  EXPECT_EQ(layout.owned(last, 0).elements, 0);
  EXPECT_EQ(layout.owned(last, 1).elements, 5);
}

// 16 elements over four ranks: a and b, b, b and c, c. Sharded by parameter all ranks have all.
TEST(ParamLayoutTest, TheFullestRankIsFound) {
  EXPECT_EQ(ParamLayout(ThreeParams(), Stage(1), 4).most_parts(all_params), 2U);
  EXPECT_EQ(ParamLayout(ThreeParams(), Stage(1), 1).most_parts(all_params), 3U);
  EXPECT_EQ(ParamLayout(ThreeParams(), Stage(3), 4).most_parts(all_params), 3U);
  const std::vector<ParamId> last = {ParamId(2)};
  EXPECT_EQ(ParamLayout(ThreeParams(), Stage(1), 8).most_parts(last), 1U);
}

// Shards of 2, 4 and 3 elements, the last rank's padded.
TEST(ParamLayoutTest, CutByParameterEachRankOwnsAShardOfEach) {
  const ParamLayout layout(ThreeParams(), Stage(3), 2);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(layout.owned(all_params, rank).parts, 3U);
    EXPECT_EQ(layout.owned(all_params, rank).elements, 2 + 4 + 3);
  }
  EXPECT_EQ(layout.owned(ParamId(2), 1).begin, 3);
  EXPECT_EQ(layout.owned(ParamId(2), 1).end, 5);
}

}  // namespace
}  // namespace dcsim
