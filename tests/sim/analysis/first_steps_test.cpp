#include "sim/analysis/first_steps.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

using enum StreamRole;

// Five products, two of them forward: all but the first find its module loaded.
TEST(FirstCallsTest, AreThoseOfTheFirstTaskOfEachKind) {
  const Graph graph = TwoLayers();
  HostCosts host;
  host.first_call = Duration::FromUs(100);
  host.first_collective = Duration::FromUs(1000);
  const Schedule schedule = LowerTiny(TinySpec(3), graph);
  const auto calls = FirstCalls(schedule, graph, host);
  ASSERT_EQ(calls.size(), schedule.task_count());
  std::vector<Duration> of_products;
  std::vector<Duration> of_collectives;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Work& work = schedule.work(schedule.task(TaskId(i)).work);
    if (work.kind == Work::Kind::kCollective) {
      of_collectives.push_back(calls[i]);
    } else if (work.kind == Work::Kind::kOp && graph.target(OpId(work.subject)) == "aten::mm") {
      of_products.push_back(calls[i]);
    }
  }
  ASSERT_EQ(of_products.size(), 5U);
  EXPECT_EQ(of_products.front(), Duration::FromUs(100));
  EXPECT_EQ(std::ranges::count(of_products, Duration()), 4);
  ASSERT_GE(of_collectives.size(), 2U);
  EXPECT_EQ(of_collectives.front(), Duration::FromUs(2000)) << "of two ranks";
  EXPECT_EQ(std::ranges::count(of_collectives, Duration()),
            static_cast<std::ptrdiff_t>(of_collectives.size()) - 1);
}

// Compute uses the first buffer for 80 ns, launched in 10; the host asks for another one at 20 ns,
// or at 120, when the module that its launch needs has loaded: then the first is back.
TEST(FirstStepsTest, WhileModulesLoadMemoryComesBack) {
  constexpr Bytes kPiece = Bytes::MiB(10);
  StepKit kit;
  kit.UseAndRelease(kit.AddGathered(kPiece, ReleaseMode::kRecordStream), kCompute, {80, 10});
  kit.Host(10);
  kit.UseAndRelease(kit.AddGathered(kPiece, ReleaseMode::kRecordStream), kGather, {1, 10});
  EXPECT_TRUE(MemoryFollowsTime(kit.schedule()));
  SimulationOptions options = OneStep();
  EXPECT_EQ(kit.Run(options).result.memory.reserved.peak, kPiece * 2);
  options.first_calls.assign(kit.schedule().task_count(), Duration());
  const auto tasks = kit.schedule().tasks();
  const auto host = std::ranges::find_if(tasks, [](const Task& task) { return task.on_host(); });
  options.first_calls[static_cast<std::size_t>(host - tasks.begin())] = Duration::FromNs(100);
  EXPECT_EQ(kit.Run(options).result.memory.reserved.peak, kPiece);
}

TEST(FirstStepsTest, MemoryInTheOrderOfEventsDoesNotFollowTime) {
  StepKit kit;
  kit.UseAndRelease(kit.AddGathered(Bytes::MiB(10), ReleaseMode::kEventOrdered), kCompute,
                    {80, 10});
  EXPECT_FALSE(MemoryFollowsTime(kit.schedule()));
}

TEST(FirstStepsTest, OnlyTheFirstStepLoadsModules) {
  StepKit kit;
  const TaskId kernel = kit.Kernel(kCompute, {1, 10});
  SimulationOptions options = Steps(2);
  options.first_calls = {Duration::FromNs(30)};
  const RunRecord run = kit.Run(options);
  EXPECT_EQ(run.host_at(kernel, 0), (Interval{0, 40}));
  EXPECT_EQ(run.host_at(kernel, 1), (Interval{40, 50}));
}

// The first step's kernel ends at 110 ns; the host goes on then. The second is not waited for.
TEST(FirstStepsTest, TheHostWaitsForAwaitedSteps) {
  StepKit kit;
  const TaskId kernel = kit.Kernel(kCompute, {100, 10});
  SimulationOptions options = Steps(3);
  options.awaited_steps = 1;
  const RunRecord run = kit.Run(options);
  EXPECT_EQ(run.host_at(kernel, 1), (Interval{110, 120}));
  EXPECT_EQ(run.host_at(kernel, 2), (Interval{120, 130}));
}

}  // namespace
}  // namespace dcsim
