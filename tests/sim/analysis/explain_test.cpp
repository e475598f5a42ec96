// What dc-sim explain is made of: exposure by collective, stalls, who is alive at the peak,
// changes.

#include <gtest/gtest.h>

#include "model/passes/resolve.h"
#include "sim/analysis/exposure.h"
#include "sim/analysis/peak_holders.h"
#include "sim/analysis/predict.h"
#include "sim/analysis/stalls.h"
#include "sim/analysis/step_metrics.h"
#include "sim/analysis/timeline_recorder.h"
#include "sim/analysis/what_if.h"
#include "tests/sim/random_step.h"
#include "tests/sim/step_kit.h"
#include "tests/sim/test_cluster.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

using enum StreamRole;

Timeline TimelineOf(StepKit& kit) {
  TimelineRecorder recorder(0);
  const std::array<Observer*, 1> observers = {&recorder};
  Simulate(kit.schedule(), kit.costs(), OneStep(), observers);
  return recorder.timeline();
}

// Collective at [0, 50), kernels at [0, 10) and [30, 60): 20 ns are bare, the second kernel hides
// more of it.
TEST(ExposureTest, IsWhatNoComputeHides) {
  StepKit kit;
  const TaskId collective = kit.Collective(kGather, {50});
  kit.Kernel(kCompute, {10});
  const TaskId later = kit.Kernel(kCompute, {30, 30});
  const auto exposures = FindExposure(TimelineOf(kit), kit.schedule());
  ASSERT_EQ(exposures.size(), 1U);
  EXPECT_EQ(exposures[0].task, collective);
  EXPECT_EQ(exposures[0].busy, Duration::FromNs(50));
  EXPECT_EQ(exposures[0].exposed, Duration::FromNs(20));
  EXPECT_EQ(exposures[0].hidden_by, later);
}

// Two communicators: [0, 50) and [20, 80). The first [0, 50) is the first one's, the rest the
// other's.
TEST(ExposureTest, TimeOfTwoAtOnceIsCountedOnce) {
  StepKit kit;
  kit.Collective(kGather, {50});
  kit.Collective(kReduce, {60, 20}, 1);
  const auto exposures = FindExposure(TimelineOf(kit), kit.schedule());
  ASSERT_EQ(exposures.size(), 2U);
  EXPECT_EQ(exposures[0].exposed, Duration::FromNs(50));
  EXPECT_EQ(exposures[1].exposed, Duration::FromNs(30));
  EXPECT_TRUE(exposures[1].hidden_by.is_none());
  const auto by_kind = ExposedByKind(exposures, kit.schedule());
  EXPECT_EQ(by_kind[0] + by_kind[1] + by_kind[2], Duration::FromNs(80));
}

// On random steps: the sum is the result's exposed communication; stalls and kernels fill the step.
TEST(ExposureTest, AddsUpToTheResult) {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const RandomStep step = MakeRandomStep(seed);
    const Cluster cluster = HandCluster();
    const PredictionInputs inputs{step.graph, nullptr, cluster};
    const Schedule schedule = LowerFor(step.plan, inputs);
    const Prediction prediction = Predict(schedule, step.plan, inputs, true);
    ASSERT_TRUE(prediction.timeline.has_value());
    Duration exposed;
    for (const CollectiveExposure& exposure : FindExposure(*prediction.timeline, schedule)) {
      exposed += exposure.exposed;
    }
    EXPECT_EQ(exposed, prediction.result.exposed_communication) << "seed " << seed;
    Duration stalled = prediction.result.compute;
    for (const ComputeStall& stall : FindComputeStalls(*prediction.timeline, schedule)) {
      stalled += stall.time;
    }
    EXPECT_EQ(stalled, prediction.result.step_time) << "seed " << seed;
  }
}

// Kernel [0, 10), wait for a copy until 50, kernel [50, 60), the host issues the next at 90.
TEST(ComputeStallTest, NamesTheCause) {
  StepKit kit;
  kit.Kernel(kCompute, {10});
  const TaskId copy = kit.Kernel(kCopy, {50});
  kit.Kernel(kCompute, {10}, {copy});
  kit.Kernel(kCompute, {5, 90});
  const auto stalls = FindComputeStalls(TimelineOf(kit), kit.schedule());
  ASSERT_EQ(stalls.size(), 2U);
  EXPECT_EQ(stalls[0].reason, StallReason::kEvent);
  EXPECT_EQ(stalls[0].time, Duration::FromNs(40));
  EXPECT_EQ(stalls[0].blocker, kit.schedule().task(copy).kind);
  EXPECT_EQ(stalls[1].reason, StallReason::kHost);
  EXPECT_EQ(stalls[1].time, Duration::FromNs(30));
}

TEST(LivePeakTest, IsThatOfTheSimulation) {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const RandomStep step = MakeRandomStep(seed);
    const Cluster cluster = HandCluster();
    const PredictionInputs inputs{step.graph, seed % 2 == 0 ? &step.profile : nullptr, cluster};
    const Schedule schedule = LowerFor(step.plan, inputs);
    const LivePeak peak = FindLivePeak(schedule);
    EXPECT_EQ(peak.bytes, Predict(schedule, step.plan, inputs, false).result.peak_live)
        << "seed " << seed;
    Bytes alive;
    for (const BufferId id : peak.alive) {
      alive += schedule.buffer(id).bytes;
    }
    EXPECT_EQ(alive, peak.bytes);
    Bytes grouped;
    for (const HolderGroup& group : GroupHolders(peak, schedule, step.graph)) {
      grouped += group.bytes;
    }
    EXPECT_EQ(grouped, peak.bytes);
  }
}

TEST(LivePeakTest, NumbersOfLayersAreLeftOut) {
  EXPECT_EQ(WithoutNumbers("model.layers.17.mlp"), "model.layers.#.mlp");
  EXPECT_EQ(WithoutNumbers("3.weight"), "#.weight");
  EXPECT_EQ(WithoutNumbers("w2"), "w2");
  EXPECT_EQ(WithoutNumbers(""), "");
}

struct TinyStep {
  TinyStep() : TinyStep(TinySpec(3), HandCluster()) {}
  TinyStep(const PlanSpec& spec, Cluster of)
      : graph(TwoLayers()),
        cluster(std::move(of)),
        plan(Resolve(spec, graph, 2)),
        schedule(LowerFor(plan, inputs())),
        costs(EstimateWorks(schedule, graph, nullptr, cluster)) {}
  PredictionInputs inputs() const { return {graph, nullptr, cluster}; }
  Duration With(const Change& change) const {
    return StepTimeWith(change, schedule, {costs}, cluster);
  }
  Graph graph;
  Cluster cluster;
  Plan plan;
  Schedule schedule;
  std::vector<WorkCost> costs;
};

TEST(WhatIfTest, NoChangeIsThePrediction) {
  const TinyStep tiny;
  EXPECT_EQ(tiny.With(Change()),
            Predict(tiny.schedule, tiny.plan, tiny.inputs(), false).result.step_time);
}

Change AllTwiceAsLong() {
  Change change;
  change.ops = change.memory_work = change.host_copies = change.collectives = change.host = 2;
  return change;
}

// Everything twice as long, the return from waits too; nothing else takes time.
TEST(WhatIfTest, StepScalesWithAllItsTimes) {
  const TinyStep tiny;
  EXPECT_EQ(tiny.With(AllTwiceAsLong()).ns(), 2 * tiny.With(Change()).ns());
}

// So are the allocator's events, on which this step's time depends.
TEST(WhatIfTest, EventsOfTheAllocatorScaleWithTheHost) {
  PlanSpec spec = TinySpec(3);
  spec.options.release = ReleaseMode::kRecordStream;
  Cluster cluster = HandCluster();
  cluster.host.record = Duration::FromUs(40);
  cluster.host.take_back = Duration::FromUs(70);
  const TinyStep slow(spec, cluster);
  EXPECT_EQ(slow.With(AllTwiceAsLong()).ns(), 2 * slow.With(Change()).ns());
  EXPECT_GT(slow.With(Change()), TinyStep(spec, HandCluster()).With(Change()));
}

// All-gather of 100 bytes over 2 ranks sends 50 bytes: at 100 GB/s half a ns, at 200 a quarter, so
// times do not change by a whole ns. With a bus of 1 byte a second 50 s become 25 s.
TEST(WhatIfTest, WiderBusTakesLessTimeOfTheWire) {
  StepKit kit;
  kit.Collective(kGather, {60'000'000'000});
  kit.schedule();
  Cluster cluster = HandCluster();
  cluster.intra_node.bus_bandwidth = BytesPerSecond(1);
  cluster.host.synchronize = Duration();
  Change change;
  change.more_bandwidth = 1;
  const ClockedCosts costs{kit.costs()};
  const Duration before = StepTimeWith(Change(), kit.schedule(), costs, cluster);
  const Duration after = StepTimeWith(change, kit.schedule(), costs, cluster);
  EXPECT_EQ(before - after, Duration::FromMs(25'000));
}

TEST(WhatIfTest, RemovedCausesNeverCostTimeAlone) {
  const TinyStep tiny;
  for (const Change& change : RemovedCauses()) {
    EXPECT_LE(tiny.With(change), tiny.With(Change())) << change.name;
  }
}

}  // namespace
}  // namespace dcsim
