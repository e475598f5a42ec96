#include "sim/analysis/step_metrics.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

using enum StreamRole;

/// Runs a schedule with StepMetrics listening.
struct MeasuredRun {
  explicit MeasuredRun(StepKit& kit,
                       const SimulationOptions& options = OneStep(),
                       Duration start = {})
      : metrics(kit.schedule(), kit.costs(), options.warmup_steps, start) {
    const std::array<Observer*, 1> observers = {&metrics};
    Simulate(kit.schedule(), kit.costs(), options, observers);
  }
  StepMetrics metrics;
};

SimulationOptions Warm(std::uint32_t warmup, std::uint32_t measured) {
  SimulationOptions options = Steps(measured);
  options.warmup_steps = warmup;
  return options;
}

// Kernels at [0, 30) and, behind a wait for a copy, at [50, 60).
TEST(StepMetricsTest, ComputeIsTheTimeOfKernelsOnTheComputeStream) {
  StepKit kit;
  kit.Kernel(kCompute, {30});
  const TaskId copy = kit.Kernel(kCopy, {50});
  kit.Kernel(kCompute, {10}, {copy});
  EXPECT_EQ(MeasuredRun(kit).metrics.compute(), Duration::FromNs(40));
}

TEST(StepMetricsTest, CollectiveOnTheComputeStreamIsNoCompute) {
  StepKit kit;
  kit.Collective(kCompute, {50});
  MeasuredRun run(kit);
  EXPECT_EQ(run.metrics.compute(), Duration());
  EXPECT_EQ(run.metrics.exposed_communication(), Duration::FromNs(50));
}

// Collective at [0, 50); the host issues a kernel at 30, which runs until 70: 20 ns are hidden.
TEST(StepMetricsTest, ExposedIsWhatNoComputeHides) {
  StepKit kit;
  kit.Collective(kGather, {50});
  kit.Kernel(kCompute, {40, 30});
  EXPECT_EQ(MeasuredRun(kit).metrics.exposed_communication(), Duration::FromNs(30));
}

// A task of 40 alone, 4 of it between its kernels, at half its speed beside a collective at [0,
// 20), so at [0, 50): the gaps are as long as alone, and the collective runs beside two fifths.
TEST(StepMetricsTest, WhatSlowsKernelsLeavesTheirGaps) {
  StepKit kit;
  const TaskId task = kit.Kernel(kCompute, {40});
  kit.SetGaps(task, 4);
  const TaskId collective = kit.Collective(kGather, {20});
  kit.SetUse(collective, DeviceUse::kCollective);
  SimulationOptions options = Contending();
  SetRate(options, DeviceUse::kStreaming, DeviceUse::kCollective, 500);
  MeasuredRun run(kit, options);
  EXPECT_EQ(run.metrics.compute(), Duration::FromNs(50));
  EXPECT_EQ(run.metrics.compute_gaps(), Duration::FromNs(4));
  EXPECT_EQ(run.metrics.exposed_gaps(), Duration::FromNs(1));
}

// A task at [0, 40), a tenth of it between its kernels, and one without gaps at [40, 60); a
// collective at [0, 20): 4 ns of gaps, of which it runs beside half.
TEST(StepMetricsTest, GapsBetweenKernelsCountByTheirShareOfTheTask) {
  StepKit kit;
  kit.Collective(kGather, {20});
  kit.SetGaps(kit.Kernel(kCompute, {40}), 4);
  kit.Kernel(kCompute, {20});
  const MeasuredRun run(kit);
  EXPECT_EQ(run.metrics.compute(), Duration::FromNs(60));
  EXPECT_EQ(run.metrics.compute_gaps(), Duration::FromNs(4));
  EXPECT_EQ(run.metrics.exposed_gaps(), Duration::FromNs(2));
  EXPECT_EQ(run.metrics.exposed_communication(), Duration());
}

// The second task, [40, 106), has two kernels, each 3 ns late because the copy waits for it: of its
// 66 ns 10 are gaps.
TEST(StepMetricsTest, DelaysByWaitingStreamsAreGaps) {
  StepKit kit;
  kit.Kernel(kCompute, {40});
  const TaskId second = kit.Kernel(kCompute, {60});
  kit.SetLaunches(second, 2);
  kit.SetGaps(second, 4);
  kit.Kernel(kCopy, {1}, {second});
  SimulationOptions options = OneStep();
  options.waiting_delays[static_cast<std::size_t>(kCopy)] = Duration::FromNs(3);
  const MeasuredRun run(kit, options);
  EXPECT_EQ(run.metrics.compute(), Duration::FromNs(106));
  EXPECT_EQ(run.metrics.compute_gaps(), Duration::FromNs(10));
}

// Kernels at [0, 10) and [20, 30) inside a collective at [0, 50): 10 + 20 are exposed.
TEST(StepMetricsTest, ExposedAddsUpTheGaps) {
  StepKit kit;
  kit.Collective(kGather, {50});
  kit.Kernel(kCompute, {10});
  kit.Kernel(kCompute, {10, 20});
  EXPECT_EQ(MeasuredRun(kit).metrics.exposed_communication(), Duration::FromNs(30));
}

// [0, 50) and [0, 20) on two communicators.
TEST(StepMetricsTest, CollectivesAtTheSameTimeAreExposedOnce) {
  StepKit kit;
  kit.Collective(kGather, {50}, 0);
  kit.Collective(kReduce, {20}, 1);
  EXPECT_EQ(MeasuredRun(kit).metrics.exposed_communication(), Duration::FromNs(50));
}

// Collectives at [0, 20), [20, 50) and [30, 60), whose kernels start 5 ns later; compute at
// [60, 70). The third begins while a kernel of the second runs.
TEST(StepMetricsTest, StartsOfExposedCollectivesAreCounted) {
  StepKit kit;
  const TaskId first = kit.Collective(kGather, {20});
  kit.Collective(kGather, {30}, 0, {first});
  const TaskId last = kit.Collective(kReduce, {30, 30}, 1);
  kit.Kernel(kCompute, {10}, {last});
  const MeasuredRun run(kit, OneStep(), Duration::FromNs(5));
  EXPECT_EQ(run.metrics.exposed_communication(), Duration::FromNs(60));
  EXPECT_EQ(run.metrics.exposed_starts(), Duration::FromNs(10));
}

// Compute at [0, 3), a collective at [0, 20) whose kernel starts at 5, and one at [20, 22), whose
// kernel never does.
TEST(StepMetricsTest, StartsThatComputeHidesAreNotCounted) {
  StepKit kit;
  kit.Collective(kGather, {20});
  kit.Kernel(kCompute, {3});
  kit.Collective(kGather, {2});
  const MeasuredRun run(kit, OneStep(), Duration::FromNs(5));
  EXPECT_EQ(run.metrics.exposed_communication(), Duration::FromNs(19));
  EXPECT_EQ(run.metrics.exposed_starts(), Duration::FromNs(4));
}

// A copy at [0, 40) and a collective at [0, 100); the kernel that the host launches at 30 begins
// when the copy has ended, and runs until 50.
TEST(StepMetricsTest, AKernelThatWaitsForMultiprocessorsHidesNothing) {
  StepKit kit;
  kit.SetUse(kit.Collective(kGather, {100}), DeviceUse::kCollective);
  kit.SetUse(kit.Kernel(kCopy, {40}), DeviceUse::kSideStreaming);
  kit.Kernel(kCompute, {10, 30});
  const MeasuredRun run(kit, Contending());
  EXPECT_EQ(run.metrics.compute(), Duration::FromNs(20));
  EXPECT_EQ(run.metrics.compute_gaps(), Duration::FromNs(10));
  EXPECT_EQ(run.metrics.exposed_gaps(), Duration::FromNs(10));
  EXPECT_EQ(run.metrics.exposed_communication(), Duration::FromNs(80));
  EXPECT_EQ(run.metrics.exposed_starts(), Duration());
}

// A copy at [0, 40); the collective of 10 that the host launches at 30 begins when it has ended.
TEST(StepMetricsTest, ACollectiveThatWaitsForMultiprocessorsHasNotStarted) {
  StepKit kit;
  kit.SetUse(kit.Kernel(kCopy, {40}), DeviceUse::kSideStreaming);
  kit.SetUse(kit.Collective(kGather, {10, 30}), DeviceUse::kCollective);
  const MeasuredRun run(kit, Contending());
  EXPECT_EQ(run.metrics.exposed_communication(), Duration::FromNs(20));
  EXPECT_EQ(run.metrics.exposed_starts(), Duration::FromNs(10));
}

TEST(StepMetricsTest, CopiesHideNothing) {
  StepKit kit;
  kit.Collective(kGather, {50});
  kit.Kernel(kCopy, {50});
  EXPECT_EQ(MeasuredRun(kit).metrics.exposed_communication(), Duration::FromNs(50));
}

// A collective that ends as a kernel starts: neither hides nor is hidden.
TEST(StepMetricsTest, NeighboursDoNotOverlap) {
  StepKit kit;
  const TaskId gather = kit.Collective(kGather, {50});
  kit.Kernel(kCompute, {10}, {gather});
  MeasuredRun run(kit);
  EXPECT_EQ(run.metrics.exposed_communication(), Duration::FromNs(50));
  EXPECT_EQ(run.metrics.compute(), Duration::FromNs(10));
}

// The first step takes 100 ns more, in which the host issues the first kernel.
TEST(StepMetricsTest, WarmupIsNotCounted) {
  StepKit kit;
  kit.Collective(kGather, {50});
  kit.Kernel(kCompute, {200, 100});
  // Step 0: collective [0, 50) alone. Step 1: [100, 150) beside the kernel of step 0.
  EXPECT_EQ(MeasuredRun(kit, Warm(0, 1)).metrics.exposed_communication(), Duration::FromNs(50));
  EXPECT_EQ(MeasuredRun(kit, Warm(1, 1)).metrics.exposed_communication(), Duration());
}

// Of the same schedule over two steps: (50 + 0) / 2.
TEST(StepMetricsTest, SeveralStepsGiveTheMean) {
  StepKit kit;
  kit.Collective(kGather, {50});
  kit.Kernel(kCompute, {200, 100});
  EXPECT_EQ(MeasuredRun(kit, Warm(0, 2)).metrics.exposed_communication(), Duration::FromNs(25));
}

Collective Group(CollectiveKind kind, std::vector<std::int64_t> elements, bool one_launch = false) {
  Collective collective;
  collective.kind = kind;
  collective.ranks = 4;
  collective.one_launch = one_launch;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    collective.calls.push_back({ParamId(i), elements[i], 0});
  }
  return collective;
}

// bfloat16: 800 + 200 bytes in one group and 400 bytes alone; each rank sends 3/4 of them, rounded
// up for each launch: 750 + 300.
TEST(StepMetricsTest, CollectivesAddUpByKind) {
  StepKit kit;
  kit.Launch(kGather, {50}, Group(CollectiveKind::kAllGather, {400, 100}));
  kit.Launch(kGather, {20}, Group(CollectiveKind::kAllGather, {200}));
  const auto totals = MeasuredRun(kit, Warm(1, 3)).metrics.collectives();
  ASSERT_EQ(totals.size(), 1U);
  EXPECT_EQ(totals[0].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(totals[0].calls, 3);
  EXPECT_EQ(totals[0].launches, 2);
  EXPECT_EQ(totals[0].payload, Bytes(1400));
  EXPECT_EQ(totals[0].wire, Bytes(1050));
  EXPECT_EQ(totals[0].busy, Duration::FromNs(70));
}

TEST(StepMetricsTest, OneLaunchOverABucketIsOneCall) {
  StepKit kit;
  kit.Launch(kReduce, {50}, Group(CollectiveKind::kReduceScatter, {400, 100}, true));
  const auto totals = MeasuredRun(kit).metrics.collectives();
  ASSERT_EQ(totals.size(), 1U);
  EXPECT_EQ(totals[0].calls, 1);
}

TEST(StepMetricsTest, KindsInUseComeInTheOrderOfTheEnumerator) {
  StepKit kit;
  kit.Launch(kReduce, {50}, Group(CollectiveKind::kAllReduce, {400}));
  kit.Launch(kGather, {50}, Group(CollectiveKind::kAllGather, {400}));
  const auto totals = MeasuredRun(kit).metrics.collectives();
  ASSERT_EQ(totals.size(), 2U);
  EXPECT_EQ(totals[0].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(totals[1].kind, CollectiveKind::kAllReduce);
}

TEST(StepMetricsTest, SourcesAreSharesOfDeviceTime) {
  StepKit kit;
  kit.SetSource(kit.Kernel(kCompute, {30, 1000}), Source::kMeasured);
  kit.SetSource(kit.Kernel(kCompute, {20}), Source::kInterpolated);
  kit.SetSource(kit.Kernel(kCopy, {50}), Source::kEstimated);
  const SourceShares shares = MeasuredRun(kit).metrics.sources();
  EXPECT_DOUBLE_EQ(shares.measured, 0.3);
  EXPECT_DOUBLE_EQ(shares.interpolated, 0.2);
  EXPECT_DOUBLE_EQ(shares.estimated, 0.5);
}

TEST(StepMetricsTest, StepWithoutDeviceTimeHasNoShares) {
  StepKit kit;
  kit.Host(5);
  const SourceShares shares = MeasuredRun(kit).metrics.sources();
  EXPECT_EQ(shares.measured + shares.interpolated + shares.estimated, 0.0);
}

TEST(StepMetricsTest, RunThatStoppedInWarmupHasNoCollectives) {
  StepKit kit;
  kit.Collective(kGather, {50});
  kit.Kernel(kCompute, {10}, {TaskId(1)});  // waits for itself
  EXPECT_TRUE(MeasuredRun(kit, Warm(2, 1)).metrics.collectives().empty());
}

}  // namespace
}  // namespace dcsim
