#include "exec/calibrate/copy_engine_fit.h"

#include <cmath>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "model/cost/copy_gather_time.h"

namespace dcsim::exec {
namespace {

CopyEngineSample SampleOf(const Cluster& cluster, int ranks, double crowded) {
  constexpr int kTensors = 64;
  const CollectivePart large{Bytes::MiB(128), Bytes(0)};
  Cluster alone = cluster;
  alone.copy_engines->crowding = 0;
  const std::vector<CollectivePart> small(kTensors);
  CopyEngineSample sample;
  sample.tensors = kTensors;
  sample.one = CopyGatherTime(cluster, std::span(small).first(1), ranks).whole.time;
  sample.many = CopyGatherTime(cluster, small, ranks).whole.time;
  sample.payload = large.payload;
  sample.least = CopyGatherTime(alone, {&large, 1}, ranks).whole.time;
  const Duration peers =
      TransferTime(Bytes(large.payload.count() / ranks * (ranks - 1)), cluster.copy_engines->rate);
  sample.median =
      sample.least + Duration::FromNs(std::llround(static_cast<double>(peers.ns()) * crowded));
  return sample;
}

Cluster ClusterOf(int ranks) {
  Cluster cluster;
  cluster.gpus_per_node = ranks;
  cluster.gpu.memory_bandwidth = BytesPerSecond(3'000'000'000'000);
  cluster.gpu.bandwidth_efficiency = 1;
  cluster.copy_engines = CopyEngines{Duration::FromNs(3'400), Duration::FromNs(2'550),
                                     BytesPerSecond(380'000'000'000), 0.75};
  return cluster;
}

// What the law says of four ranks whose copies take half as long again: the law's own numbers.
TEST(FitCopyEnginesTest, FindsWhatTheLawWasMadeOf) {
  const Cluster cluster = ClusterOf(4);
  const CopyEngines fit =
      FitCopyEngines(SampleOf(cluster, 4, 0.5), 4, cluster.gpu.memory_bandwidth);
  EXPECT_EQ(fit.start, Duration::FromNs(3'400));
  EXPECT_EQ(fit.copy, Duration::FromNs(2'550));
  EXPECT_NEAR(static_cast<double>(fit.rate.count()) / 380e9, 1, 1e-3);
  EXPECT_NEAR(fit.crowding, 0.75, 1e-3);
}

// Nobody else reads from the one other GPU, whatever the times say.
TEST(FitCopyEnginesTest, TwoRanksDoNotCrowd) {
  const Cluster cluster = ClusterOf(2);
  EXPECT_EQ(FitCopyEngines(SampleOf(cluster, 2, 0.5), 2, cluster.gpu.memory_bandwidth).crowding, 0);
}

}  // namespace
}  // namespace dcsim::exec
