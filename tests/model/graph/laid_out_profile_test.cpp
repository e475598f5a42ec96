// Which entry of a profile holds where a schedule keeps an op's parameters.

#include "model/graph/laid_out_profile.h"

#include <gtest/gtest.h>

#include "tests/model/graph/bias_and_weights.h"

namespace dcsim {
namespace {

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

TEST(LaidOutProfileTest, OpsAreThoseMeasuredSideBySideWhereTheirParametersLieSo) {
  const Graph graph = BiasAndWeights();
  const Profile profile = Measured();
  const LaidOutProfile shifted(graph, &profile, Stage(1), 2);
  EXPECT_EQ(shifted.Find(OpId(0)).entry->device_time.ns(), 10);
  EXPECT_EQ(shifted.Find(OpId(1)).entry->device_time.ns(), 110);
  EXPECT_TRUE(shifted.Find(OpId(1)).shifted);
  EXPECT_FALSE(shifted.Find(OpId(2)).shifted);

  const LaidOutProfile gathered(graph, &profile, Stage(3), 2);
  EXPECT_EQ(gathered.Find(OpId(1)).entry->device_time.ns(), 11);
  EXPECT_FALSE(gathered.Find(OpId(1)).shifted);
}

// Shards of four ranks pad six elements to eight: the last weight begins 24 bytes behind, not 20.
TEST(LaidOutProfileTest, OpsWhoseParametersLieElsewhereAreNot) {
  const Graph graph = BiasAndWeights();
  const Profile profile = Measured();
  const auto reduce_scatter = Stage(1, ReduceCollective::kReduceScatter);
  const LaidOutProfile padded(graph, &profile, reduce_scatter, 4);
  EXPECT_EQ(padded.Find(OpId(1)).entry->device_time.ns(), 11);
  EXPECT_FALSE(padded.Find(OpId(1)).shifted);
}

TEST(LaidOutProfileTest, ProfilesWithoutThemAndNoneTellNothing) {
  const Graph graph = BiasAndWeights();
  Profile profile = Measured();
  profile.side_by_side.clear();
  const LaidOutProfile older(graph, &profile, Stage(1), 2);
  EXPECT_EQ(older.Find(OpId(1)).entry->device_time.ns(), 11);
  EXPECT_FALSE(older.Find(OpId(1)).shifted);
  EXPECT_EQ(LaidOutProfile(graph, nullptr, Stage(1), 2).Find(OpId(1)).entry, nullptr);
}

}  // namespace
}  // namespace dcsim
