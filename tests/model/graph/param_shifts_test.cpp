// Where ZeRO-1 and 2 shift parameters.

#include "model/graph/param_shifts.h"

#include <gtest/gtest.h>

#include "tests/model/graph/bias_and_weights.h"

namespace dcsim {
namespace {

ValueId ValueOf(const Graph& graph, std::size_t param) {
  return graph.param(ParamId(param)).value;
}

ScheduleOptions Stage(int stage) {
  ScheduleOptions options;
  options.stage = stage;
  return options;
}

TEST(ParamShiftsTest, AnOddBiasShiftsWhatLiesBehindIt) {
  const Graph graph = BiasAndWeights();
  for (const int stage : {1, 2}) {
    const ParamShifts shifts(graph, Stage(stage), 2);
    EXPECT_EQ(shifts.Of(ValueOf(graph, 0)), 0);
    EXPECT_EQ(shifts.Of(ValueOf(graph, 1)), 8);
    EXPECT_EQ(shifts.Of(ValueOf(graph, 2)), 4);  // 10 elements, 20 bytes
    EXPECT_EQ(shifts.AlignmentOf(OpId(0)), 16);
    EXPECT_EQ(shifts.AlignmentOf(OpId(1)), 4);
    EXPECT_EQ(shifts.AlignmentOf(OpId(2)), 16);
  }
}

TEST(ParamShiftsTest, NothingIsShiftedWhereParametersAreGatheredOrAligned) {
  const Graph graph = BiasAndWeights();
  ScheduleOptions aligned = Stage(1);
  aligned.align_tensors = true;  // the weights, of which the larger fills two times 16 bytes, first
  EXPECT_EQ(ParamShifts(graph, Stage(3), 2).AlignmentOf(OpId(1)), 16);
  EXPECT_EQ(ParamShifts(graph, aligned, 2).Of(ValueOf(graph, 2)), 0);
}

// On two ranks the bias' shard has 2 elements, 4 bytes, behind which the first weights' begins, of
// 3 elements; the second weights' at 10 bytes.
TEST(ShiftedShardsTest, AnOddShardShiftsThoseBehindIt) {
  const Graph graph = BiasAndWeights();
  EXPECT_EQ(ShiftedShards(graph, Stage(3), 2), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(ShiftedShards(graph, Stage(1), 2), (std::vector<bool>{false, false, false}));
}

}  // namespace
}  // namespace dcsim
