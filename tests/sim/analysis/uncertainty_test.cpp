#include "sim/analysis/uncertainty.h"

#include <cmath>

#include <gtest/gtest.h>

#include "model/passes/resolve.h"
#include "sim/analysis/predict.h"
#include "sim/analysis/what_if.h"
#include "tests/sim/test_cluster.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

/// HandCluster, of four ranks of which every collective was measured at one size.
Cluster MeasuredCluster() {
  Cluster cluster = HandCluster();
  for (const auto kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce}) {
    cluster.collectives.push_back(
        {kind, 4, /*calls=*/1, {{Bytes(1 << 20), Duration::FromUs(100)}}});
  }
  return cluster;
}

/// The plain ZeRO-3 step of a small graph, predicted.
struct Predicted {
  Graph graph = TwoLayers();
  Cluster cluster = MeasuredCluster();
  Plan plan;
  PredictionInputs inputs{graph, nullptr, cluster};

  explicit Predicted(std::optional<PartErrors> errors) {
    cluster.gpu.errors = errors;
    plan = Resolve(TinySpec(3), graph, 4);
  }
  Result result() { return Predict(LowerFor(plan, inputs), plan, inputs, false).result; }

  double Slower(const Change& change) {
    const Schedule schedule = LowerFor(plan, inputs);
    const ClockedCosts costs{EstimateWorks(schedule, graph, nullptr, cluster)};
    const Duration time = StepTimeWith(change, schedule, costs, cluster);
    return static_cast<double>((time - result().step_time).ns());
  }
};

TEST(StepTimeBoundTest, IsUnknownWithoutErrorsOfTheParts) {
  const Result result = Predicted(std::nullopt).result();
  EXPECT_FALSE(result.bound);
  EXPECT_EQ(result.no_bound, "no step was ever measured on Hand GPU: its GPU file has no errors");
}

// Four ranks on two nodes: the tables are of one.
TEST(StepTimeBoundTest, IsUnknownOverANetworkThatNobodyMeasured) {
  Predicted predicted{PartErrors()};
  EXPECT_TRUE(predicted.result().bound);
  EXPECT_EQ(predicted.result().no_bound, "");
  predicted.cluster.nodes = 2;
  predicted.cluster.gpus_per_node = 2;
  predicted.cluster.inter_node = predicted.cluster.intra_node;
  EXPECT_FALSE(predicted.result().bound);
  EXPECT_EQ(predicted.result().no_bound,
            "no all_gather of 4 ranks on 2 nodes was ever measured: its time is a formula of the "
            "link");
}

TEST(StepTimeBoundTest, CollectivesErrByMoreFarFromMeasuredSizesAndRanks) {
  const auto bound = [](int measured_ranks, Bytes measured_size) {
    PartErrors errors;
    errors.sizes = 0.01;
    errors.ranks = 0.01;
    Predicted predicted(errors);
    for (CollectiveTable& table : predicted.cluster.collectives) {
      table.ranks = measured_ranks;
      table.points = {{measured_size, Duration::FromUs(100)}};
    }
    return *predicted.result().bound;
  };
  EXPECT_GT(bound(4, Bytes::MiB(64)), bound(4, Bytes::MiB(1)));
  EXPECT_GT(bound(8, Bytes::MiB(1)), bound(4, Bytes::MiB(1)));
}

// 1.645 standard deviations hold nine of ten values of a normal distribution.
TEST(StepTimeBoundTest, AnErrorOfTheWholeStepIsTheWholeBound) {
  PartErrors errors;
  errors.step = Duration::FromUs(100);
  EXPECT_EQ(Predicted(errors).result().bound, Duration::FromNs(164'500));
}

// Parts err independently: squares add up.
TEST(StepTimeBoundTest, EachPartAddsWhatItsErrorMakesOfTheStep) {
  PartErrors errors;
  errors.ops = 0.5;  // of profiled ones: there are none
  errors.roofline = 0.1;
  errors.collectives = 0.2;
  errors.host = 0.3;
  Predicted predicted(errors);
  Change ops;
  ops.ops = 1.1;
  Change collectives;
  collectives.collectives = 1.2;
  Change host;
  host.host = 1.3;
  const double apart =
      std::hypot(predicted.Slower(ops), predicted.Slower(collectives), predicted.Slower(host));
  ASSERT_GT(apart, 0);
  EXPECT_EQ(predicted.result().bound, Duration::FromNs(std::llround(1.645 * apart)));
}

// Nobody knows whether a job's streams delay kernels, unless it was measured.
TEST(StepTimeBoundTest, WhatStreamsThatWaitAreExpectedToDelayMayBeNothing) {
  Predicted predicted{PartErrors()};
  EXPECT_EQ(predicted.result().bound, Duration());  // this cluster's delay nothing
  predicted.cluster.host = {};                      // or streams never wait for compute
  predicted.cluster.gpu.gaps.waiting.fill(Duration::FromMs(1));
  Change without;
  without.waiting_streams = false;
  const double faster = predicted.Slower(without);
  ASSERT_LT(faster, 0);
  EXPECT_EQ(predicted.result().bound, Duration::FromNs(std::llround(-1.645 * faster)));
  predicted.cluster.gpu.gaps.waiting_measured = true;
  EXPECT_EQ(predicted.result().bound, Duration());
}

// The tiny graph's ops are no operators that anybody has profiled.
TEST(StepTimeBoundTest, KernelsThatNoProfileHasShownErrByMore) {
  PartErrors errors;
  errors.roofline = 0.1;
  errors.guessed = 0.4;
  Predicted predicted(errors);
  Change ops;
  ops.ops = 1.4;
  EXPECT_EQ(predicted.result().bound,
            Duration::FromNs(std::llround(1.645 * predicted.Slower(ops))));
}

TEST(StepTimeBoundTest, CopiesFromAndToTheHostHaveAnErrorOfTheirOwn) {
  PartErrors errors;
  errors.host_copies = 0.1;
  Predicted predicted(errors);
  EXPECT_EQ(predicted.result().bound, Duration());  // nothing is offloaded
  predicted.cluster.memory_patterns = {{MemoryPattern::kOffload, BytesPerSecond(1'000)},
                                       {MemoryPattern::kReload, BytesPerSecond(1'000)}};
  PlanSpec spec = TinySpec(3);
  spec.offload_optimizer.bytes = Bytes(1);
  predicted.plan = Resolve(spec, predicted.graph, 4);
  Change copies;
  copies.host_copies = 1.1;
  const double slower = predicted.Slower(copies);
  ASSERT_GT(slower, 0);
  EXPECT_EQ(predicted.result().bound, Duration::FromNs(std::llround(1.645 * slower)));
}

}  // namespace
}  // namespace dcsim
