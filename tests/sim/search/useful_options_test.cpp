#include "sim/search/useful_options.h"

#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "tests/sim/search/search_kit.h"
#include "tests/sim/test_cluster.h"
#include "tests/support/workloads.h"

namespace dcsim {
namespace {

SearchSpace Read(const Json& options) {
  const Json document = {{"format", "dc-space/1"}, {"options", options}};
  return ReadSearchSpace(document, PointerLocator("space.yaml"));
}

/// HandCluster of four GPUs whose copy engines were measured.
Cluster WithCopyEngines() {
  Cluster cluster = HandCluster();
  cluster.gpus_per_node = 4;
  cluster.copy_engines =
      CopyEngines{Duration::FromUs(3), Duration::FromUs(2), BytesPerSecond(100'000'000'000), 0.5};
  return cluster;
}

TEST(UsefulOptionsTest, UnmeasuredCopyEnginesAreLeftOut) {
  SearchSpace space = Read({{"stage", {2, 3}}, {"gather_engine", {"nccl", "copy_engine"}}});
  const auto all = space.options;
  EXPECT_FALSE(LeaveOutUnmeasuredCopies(WithCopyEngines(), 4, space));
  EXPECT_EQ(space.options, all);
  EXPECT_TRUE(LeaveOutUnmeasuredCopies(WithCopyEngines(), 8, space));
  ASSERT_EQ(space.options.size(), 2U);
  EXPECT_EQ(space.options[1].stage, 3);
  EXPECT_EQ(space.options[1].gather_engine, Engine::kNccl);
}

TEST(UsefulOptionsTest, CopyEnginesAskedForAloneStay) {
  SearchSpace space = Read({{"stage", {2, 3}}, {"gather_engine", "copy_engine"}});
  EXPECT_FALSE(LeaveOutUnmeasuredCopies(HandCluster(), 8, space));
  EXPECT_EQ(space.options.size(), 2U);
}

// ZeRO-3 by NCCL may fuse casts or not, by copies not, ZeRO-1 has nothing to fuse; in a graph
// without casts all of that is ZeRO-3 by NCCL, by copies, and ZeRO-1.
TEST(UsefulOptionsTest, CastsAreFusedWhereTheGraphHasAny) {
  SearchSpace space = Read({{"stage", {1, 3}},
                            {"gather_engine", {"nccl", "copy_engine"}},
                            {"fuse_casts", {false, true}}});
  const SearchSpace all = space;
  EXPECT_EQ(all.options.size(), 1U + 2U + 1U);
  LeaveOutUselessFusing(TrainingGraph("autocast"), space);
  EXPECT_EQ(space.options, all.options);
  LeaveOutUselessFusing(TrainingGraph("frozen"), space);
  EXPECT_EQ(space.options.size(), 3U);
  for (const ScheduleOptions& options : space.options) {
    EXPECT_FALSE(options.fuse_casts);
  }
}

// 12 elements of 2 bytes fill no multiple of 16 bytes, 16 do, also on two ranks; not on four.
TEST(UsefulOptionsTest, TensorsAreAlignedWhereSomeAreNot) {
  const auto decided = [](int elements, int ranks, const Json& values) {
    SearchSpace space = Read({{"stage", {1, 3}}, {"align_tensors", values}});
    DecideAlignment(
        ParseGraphText("graph one 1 tokens\nparam w bfloat16[" + std::to_string(elements) +
                       "]\nforward\n  l: float32[] = my::loss(w)\n  loss l\n"),
        ranks, space);
    std::vector<bool> aligned;
    for (const ScheduleOptions& options : space.options) {
      aligned.push_back(options.align_tensors);
    }
    return aligned;
  };
  const std::vector<bool> both = {true, true};
  const std::vector<bool> neither = {false, false};
  EXPECT_EQ(decided(12, 2, {false, true}), both);
  EXPECT_EQ(decided(16, 2, {false, true}), neither);
  EXPECT_EQ(decided(16, 4, {false, true}), both);
  EXPECT_EQ(decided(12, 2, Json::array({true})), both);
  EXPECT_EQ(decided(12, 2, Json::array({false})), neither);
}

}  // namespace
}  // namespace dcsim
