#include "sim/analysis/host_pace.h"

#include <cmath>

#include <gtest/gtest.h>

#include "model/cost/work_cost.h"
#include "model/passes/resolve.h"
#include "tests/sim/test_cluster.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

/// A step of TwoLayers on two ranks: of ops two products, of 1.9 launches each (LaunchesOf), and
/// a sum.
struct Step {
  std::vector<HostPace> Paces(const std::vector<RankReadings>& ranks) const {
    return HostPaces(ranks, schedule, inputs);
  }
  Duration Launches(double count) const {
    return Duration::FromNs(std::llround(count * static_cast<double>(cluster.host.launch.ns())));
  }
  RankReadings Read(std::int64_t ops, std::vector<std::optional<Duration>> times) const {
    RankReadings rank;
    rank.host.ops = ops;
    rank.host.times = std::move(times);
    return rank;
  }
  /// Of the tasks that compute forward ops, which come first.
  std::vector<double> OfForward(const HostPace& pace) const {
    std::vector<double> slowdowns;
    std::size_t at = 0;
    for (const Task& task : schedule.tasks()) {
      if (task.kind == TaskKind::kCompute && slowdowns.size() < 3) {
        slowdowns.push_back(pace.tasks[at].slowdown);
      }
      ++at;
    }
    return slowdowns;
  }

  Graph graph = TwoLayers();
  Cluster cluster = HandCluster();
  Plan plan = Resolve(TinySpec(1), graph, 2);
  PredictionInputs inputs{graph, nullptr, cluster};
  Schedule schedule = LowerFor(plan, inputs);
};

TEST(HostPaceTest, EveryRankHasItsOwn) {
  const Step step;
  const auto paces = step.Paces({step.Read(3, {step.Launches(4.8 * 1.25)}), RankReadings(),
                                 step.Read(3, {step.Launches(4.8 * 1.75)})});
  ASSERT_EQ(paces.size(), 2U);
  EXPECT_NEAR(paces[0].slowdown, 1.25, 1e-9);
  EXPECT_NEAR(paces[1].slowdown, 1.75, 1e-9);
  EXPECT_EQ(paces[0].tasks.size(), step.schedule.task_count());
}

TEST(HostPaceTest, StretchesTakeWhatTheyTookAndOthersTheMean) {
  const Step step;
  const auto paces =
      step.Paces({step.Read(1, {std::nullopt, step.Launches(1.9 * 2), step.Launches(1.5)})});
  ASSERT_EQ(paces.size(), 1U);
  const double mean = (1.5 + 1.9 * 2) / 2.9;
  EXPECT_NEAR(paces[0].slowdown, mean, 1e-9);
  const auto forward = step.OfForward(paces[0]);
  EXPECT_NEAR(forward[0], mean, 1e-9);
  EXPECT_NEAR(forward[1], 2, 1e-9);
  EXPECT_NEAR(forward[2], 1.5, 1e-9);
}

// The first stretch is slower than those behind it on any host.
TEST(HostPaceTest, TheFirstStretchSaysNothingOfThoseThatWereNotRead) {
  const Step step;
  const auto both =
      step.Paces({step.Read(1, {step.Launches(1.9 * 3), step.Launches(1.9 * 2), std::nullopt})});
  ASSERT_EQ(both.size(), 1U);
  EXPECT_NEAR(both[0].slowdown, 2.5, 1e-9);
  const auto forward = step.OfForward(both[0]);
  EXPECT_NEAR(forward[0], 3, 1e-9);
  EXPECT_NEAR(forward[1], 2, 1e-9);
  EXPECT_NEAR(forward[2], 2, 1e-9);

  const auto first = step.Paces({step.Read(1, {step.Launches(1.9 * 3), std::nullopt})});
  ASSERT_EQ(first.size(), 1U);
  EXPECT_NEAR(step.OfForward(first[0])[0], 3, 1e-9);
  EXPECT_NEAR(step.OfForward(first[0])[1], 1, 1e-9);
}

// The forward's gather and what else is not an op took half of what they are priced at.
TEST(HostPaceTest, TasksBetweenOpsHaveTheirOwn) {
  const Step step;
  RankReadings rank = step.Read(3, {step.Launches(4.8 * 2)});
  const auto costs = EstimateWorks(step.schedule, step.graph, nullptr, step.cluster);
  Duration between;
  std::size_t ops = 0;
  for (const Task& task : step.schedule.tasks()) {
    ops += task.kind == TaskKind::kCompute ? 1 : 0;
    if (ops <= 3 && task.kind != TaskKind::kCompute && !task.on_host()) {
      between += costs[task.work.index()].host;
    }
  }
  ASSERT_GT(between, Duration());
  rank.host.between = {Duration::FromNs(between.ns() / 2)};
  const auto paces = step.Paces({rank});
  ASSERT_EQ(paces.size(), 1U);
  EXPECT_NEAR(paces[0].slowdown, 2, 1e-9);
  std::size_t at = 0;
  for (const Task& task : step.schedule.tasks()) {
    const double expected = task.kind == TaskKind::kCompute ? 2 : 0.5;
    EXPECT_NEAR(paces[0].tasks[at++].slowdown, expected, 1e-3);
  }
}

// Results of 2026-11-24 tell the first ops only.
TEST(HostPaceTest, WhatComesBehindTheReadingTakesTheMean) {
  const Step step;
  const auto paces = step.Paces({step.Read(1, {step.Launches(1.9 * 3)})});
  ASSERT_EQ(paces.size(), 1U);
  for (const TaskPace& task : paces[0].tasks) {
    EXPECT_NEAR(task.slowdown, 3, 1e-9);
  }
}

// Ops of four kernels: the third ends with twelve that may not have ended, so that its launches may
// have waited for the GPU in a queue of twelve.
TEST(HostPaceTest, StretchesThatMayHaveFilledTheLaunchQueueAreNotRead) {
  Step step;
  Profile profile;
  profile.kernels = {Kernel()};
  for (std::size_t i = 0; i < step.graph.ops.size(); ++i) {
    OpProfile entry;
    entry.op = OpId(i);
    entry.host_time = Duration::FromUs(10);
    entry.kernels = {0, 0, 0, 0};
    profile.ops.push_back(entry);
  }
  const auto read_with = [&](int launch_queue) {
    step.cluster.host.launch_queue = launch_queue;
    const auto times = std::vector<std::optional<Duration>>(3, Duration::FromUs(20));
    const auto paces = HostPaces({step.Read(1, times)}, step.schedule,
                                 PredictionInputs{step.graph, &profile, step.cluster});
    std::vector<bool> read;
    std::size_t at = 0;
    for (const Task& task : step.schedule.tasks()) {
      if (task.kind == TaskKind::kCompute && read.size() < times.size()) {
        read.push_back(paces.at(0).tasks[at].read);
      }
      ++at;
    }
    return read;
  };
  EXPECT_EQ(read_with(12), (std::vector<bool>{true, true, false}));
  EXPECT_EQ(read_with(13), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(read_with(0), (std::vector<bool>{true, true, true}));  // any number
}

TEST(HostPaceTest, NothingIsKnownWithoutReadings) {
  const Step step;
  EXPECT_TRUE(step.Paces({}).empty());
  EXPECT_TRUE(step.Paces({RankReadings(), step.Read(1, {std::nullopt})}).empty());
}

}  // namespace
}  // namespace dcsim
