#include "model/cost/copy_gather_time.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/model/machine/cluster_document.h"
#include "tests/support/error_text.h"

namespace dcsim {
namespace {

/// Own shards go at 1 TB/s, read and written: of TestCluster, no kernel of which is below 2 us.
Cluster WithCopyEngines() {
  Cluster cluster = TestCluster();
  cluster.copy_engines =
      CopyEngines{Duration::FromUs(3), Duration::FromUs(2), BytesPerSecond(400'000'000'000), 0.75};
  return cluster;
}

// Of four ranks two others may read from the same GPU, each in a third of its time: 0.75 * 2 / 3.
TEST(CopyGatherTimeTest, RanksBeyondTwoCrowd) {
  const CopyEngines engines = *WithCopyEngines().copy_engines;
  EXPECT_EQ(CrowdedCopies(engines, 1), 1);
  EXPECT_EQ(CrowdedCopies(engines, 2), 1);
  EXPECT_EQ(CrowdedCopies(engines, 4), 1.5);
}

// 3 us, four copies of 2 us, 6 MB from others at 400 GB/s half as long again, 2 MB of its own.
TEST(CopyGatherTimeTest, OneTensorOverFourGpus) {
  const CollectivePart tensor{Bytes(8'000'000), Bytes(0)};
  const CollectivePrice gather = CopyGatherTime(WithCopyEngines(), {&tensor, 1}, 4);
  EXPECT_EQ(gather.whole.time.ns(), 3'000 + 4 * 2'000 + 22'500 + 4'000);
  EXPECT_EQ(gather.own_shards.ns(), 2'000 + 4'000);
  EXPECT_EQ(gather.whole.source, Source::kMeasured);
}

// One start, and each tensor's copies; of two ranks nobody else reads from the other GPU.
TEST(CopyGatherTimeTest, TensorsOfOneLaunchShareItsStart) {
  const std::vector<CollectivePart> tensors{{Bytes(4'000'000), Bytes(0)}, {Bytes(0), Bytes(0)}};
  const CollectivePrice gather = CopyGatherTime(WithCopyEngines(), tensors, 2);
  EXPECT_EQ(gather.whole.time.ns(), 3'000 + 2 * 2 * 2'000 + 5'000 + 4'000);
  EXPECT_EQ(gather.own_shards.ns(), 2 * 2'000 + 4'000);
  EXPECT_EQ(gather.whole.source, Source::kEstimated) << "of a cluster of four GPUs";
}

// 6 us of latency and 3 MB at the link's 400 GB/s; 1 MB of its own.
TEST(CopyGatherTimeTest, UnmeasuredCopyEnginesGoAtTheLinksBandwidth) {
  const CollectivePart tensor{Bytes(4'000'000), Bytes(0)};
  const CollectivePrice gather = CopyGatherTime(TestCluster(), {&tensor, 1}, 4);
  EXPECT_EQ(gather.whole.time.ns(), 6'000 + 7'500 + 2'000);
  EXPECT_EQ(gather.whole.source, Source::kEstimated);
}

// Two nodes of four GPUs.
TEST(CopyGatherTimeTest, RanksOfSeveralNodesAreRefused) {
  const CollectivePart tensor{Bytes(4'000'000), Bytes(0)};
  EXPECT_EQ(
      ErrorText([&] {
        CopyGatherTime(WithCopyEngines(), {&tensor, 1}, 8);
      }),
      "gather_engine: copy_engine: 8 ranks lie on 2 nodes, and copy engines reach the GPUs of "
      "one node alone (gpus_per_node: 4); use gather_engine: nccl");
}

// Copies within the GPU, one by one: 16 us, and no less than the shortest kernel.
TEST(CopyGatherTimeTest, OneRankCopiesItsOwnTensors) {
  const std::vector<CollectivePart> tensors{{Bytes(8'000'000), Bytes(0)}, {Bytes(8), Bytes(0)}};
  const CollectivePrice gather = CopyGatherTime(WithCopyEngines(), tensors, 1);
  EXPECT_EQ(gather.whole.time.ns(), 16'000 + 2'000);
  EXPECT_EQ(gather.own_shards, gather.whole.time);
}

}  // namespace
}  // namespace dcsim
