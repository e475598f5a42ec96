// Where ZeRO-1 and 2 shift parameters, and which entry of a profile holds there.

#include "model/graph/param_shifts.h"

#include <gtest/gtest.h>

#include "model/ir/graph_text.h"

namespace dcsim {
namespace {

/// A bias of four elements, 8 bytes, shifts the weights behind it. Op 0 reads the bias, op 1 both
/// weights, op 2 no parameter.
Graph BiasAndWeights() {
  return ParseGraphText(R"(
graph shifted 1 tokens
param b bfloat16[4]
param v bfloat16[6]
param w bfloat16[16]
input x bfloat16[16]
forward
  a: bfloat16[16] = my::op(x, b)
  c: bfloat16[16] = my::op(a, v, w)
  l: float32[] = my::loss(c)
  loss l
)");
}

ValueId ValueOf(const Graph& graph, std::size_t param) {
  return graph.param(ParamId(param)).value;
}

ScheduleOptions Stage(int stage, ReduceCollective collective = ReduceCollective::kAllReduce) {
  ScheduleOptions options;
  options.stage = stage;
  options.reduce_collective = collective;
  return options;
}

OpProfile EntryOf(std::size_t op, std::int64_t ns) {
  OpProfile entry;
  entry.op = OpId(op);
  entry.device_time = Duration::FromNs(ns);
  return entry;
}

Profile Measured() {
  Profile profile;
  profile.ops = {EntryOf(0, 10), EntryOf(1, 11), EntryOf(2, 12)};
  profile.side_by_side = {EntryOf(1, 110)};
  return profile;
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

TEST(LaidOutProfileTest, OpsAreThoseMeasuredSideBySideWhereTheirParametersLieSo) {
  const Graph graph = BiasAndWeights();
  const Profile profile = Measured();
  const LaidOutProfile shifted(graph, &profile, Stage(1), 2);
  EXPECT_EQ(shifted.Find(OpId(0))->device_time.ns(), 10);
  EXPECT_EQ(shifted.Find(OpId(1))->device_time.ns(), 110);
  EXPECT_EQ(shifted.FindShifted(OpId(1)), shifted.Find(OpId(1)));
  EXPECT_EQ(shifted.FindShifted(OpId(2)), nullptr);

  const LaidOutProfile gathered(graph, &profile, Stage(3), 2);
  EXPECT_EQ(gathered.Find(OpId(1))->device_time.ns(), 11);
  EXPECT_EQ(gathered.FindShifted(OpId(1)), nullptr);
}

// Shards of four ranks pad six elements to eight: the last weight begins 24 bytes behind, not 20.
TEST(LaidOutProfileTest, OpsWhoseParametersLieElsewhereAreNot) {
  const Graph graph = BiasAndWeights();
  const Profile profile = Measured();
  const auto reduce_scatter = Stage(1, ReduceCollective::kReduceScatter);
  const LaidOutProfile padded(graph, &profile, reduce_scatter, 4);
  EXPECT_EQ(padded.Find(OpId(1))->device_time.ns(), 11);
  EXPECT_EQ(padded.FindShifted(OpId(1)), nullptr);
}

TEST(LaidOutProfileTest, ProfilesWithoutThemAndNoneTellNothing) {
  const Graph graph = BiasAndWeights();
  Profile profile = Measured();
  profile.side_by_side.clear();
  const LaidOutProfile older(graph, &profile, Stage(1), 2);
  EXPECT_EQ(older.Find(OpId(1))->device_time.ns(), 11);
  EXPECT_EQ(older.FindShifted(OpId(1)), nullptr);
  EXPECT_EQ(LaidOutProfile(graph, nullptr, Stage(1), 2).Find(OpId(1)), nullptr);
}

}  // namespace
}  // namespace dcsim
