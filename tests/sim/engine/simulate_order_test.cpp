// When tasks run: streams, events, the host, communicators, steps.

#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

using enum StreamRole;

std::vector<std::int64_t> EndsOf(const std::vector<SimTime>& times) {
  std::vector<std::int64_t> ends;
  ends.reserve(times.size());
  for (const SimTime time : times) {
    ends.push_back(time.ns());
  }
  return ends;
}

// Streams and events; the host takes no time.

TEST(SimulateTest, StreamRunsItsTasksInIssueOrder) {
  StepKit kit;
  const TaskId first = kit.Kernel(kCompute, {30});
  const TaskId second = kit.Kernel(kCompute, {20});
  const RunRecord run = kit.Run();
  EXPECT_EQ(run.at(first), (Interval{0, 30}));
  EXPECT_EQ(run.at(second), (Interval{30, 50}));
}

TEST(SimulateTest, StreamsRunSideBySide) {
  StepKit kit;
  kit.Kernel(kCompute, {30});
  const TaskId other = kit.Kernel(kCopy, {20});
  EXPECT_EQ(kit.Run().at(other), (Interval{0, 20}));
}

TEST(SimulateTest, TaskWaitsForItsEvent) {
  StepKit kit;
  const TaskId gather = kit.Kernel(kGather, {50});
  const TaskId use = kit.Kernel(kCompute, {10}, {gather});
  EXPECT_EQ(kit.Run().at(use), (Interval{50, 60}));
}

TEST(SimulateTest, TaskWaitsForTheLastOfItsEvents) {
  StepKit kit;
  const TaskId late = kit.Kernel(kReduce, {80});
  const TaskId early = kit.Kernel(kGather, {50});
  const TaskId use = kit.Kernel(kCompute, {10}, {late, early});
  EXPECT_EQ(kit.Run().at(use), (Interval{80, 90}));
}

// cudaStreamWaitEvent takes no time, and everything behind it on the stream waits too.
TEST(SimulateTest, WaitWithoutWorkHoldsUpItsStream) {
  StepKit kit;
  const TaskId gather = kit.Kernel(kGather, {50});
  const TaskId wait = kit.Wait(kCompute, {gather});
  const TaskId behind = kit.Kernel(kCompute, {10});
  const RunRecord run = kit.Run();
  EXPECT_EQ(run.at(wait), (Interval{50, 50}));
  EXPECT_EQ(run.at(behind), (Interval{50, 60}));
}

// A chain of waits over all four streams passes at one moment: 40 ns.
TEST(SimulateTest, WaitsPassOnAtOnce) {
  StepKit kit;
  TaskId last = kit.Kernel(kCopy, {40});
  for (const StreamRole stream : {kReduce, kGather, kCompute, kReduce, kCopy}) {
    last = kit.Wait(stream, {last});
  }
  EXPECT_EQ(kit.Run().at(last), (Interval{40, 40}));
}

// The host.

// Each call takes 5 ns of the host, each kernel 1 ns: the kernels start as they are issued.
TEST(SimulateTest, HostBoundTasksStartWhenIssued) {
  StepKit kit;
  const TaskId first = kit.Kernel(kCompute, {1, 5});
  const TaskId second = kit.Kernel(kCompute, {1, 5});
  const RunRecord run = kit.Run();
  EXPECT_EQ(run.at(first), (Interval{5, 6}));
  EXPECT_EQ(run.host_at(second), (Interval{5, 10}));
  EXPECT_EQ(run.at(second), (Interval{10, 11}));
}

TEST(SimulateTest, HostRunsAheadOfTheGpu) {
  StepKit kit;
  kit.Kernel(kCompute, {100, 5});
  const TaskId second = kit.Kernel(kCompute, {100, 5});
  const RunRecord run = kit.Run();
  EXPECT_EQ(run.host_at(second), (Interval{5, 10}));
  EXPECT_EQ(run.at(second), (Interval{105, 205}));
}

/// Kernels of 100 ns that the host issues in 5 ns each, with so many launches.
std::vector<TaskId> AddKernels(StepKit& kit, const std::vector<std::int32_t>& launches) {
  std::vector<TaskId> kernels;
  for (const std::int32_t count : launches) {
    kernels.push_back(kit.Kernel(kCompute, {100, 5}));
    kit.SetLaunches(kernels.back(), count);
  }
  return kernels;
}

SimulationOptions WithQueue(int launches) {
  SimulationOptions options = OneStep();
  options.launch_queue = launches;
  return options;
}

// Two kernels fill the queue. The third is ready to go at 15 and goes when the first has ended, at
// 105; the fourth, 5 ns of work later, when the second has, at 205. The GPU never waits.
TEST(SimulateTest, HostWaitsForRoomInTheLaunchQueue) {
  StepKit kit;
  const auto kernels = AddKernels(kit, {1, 1, 1, 1});
  const RunRecord run = kit.Run(WithQueue(2));
  EXPECT_EQ(run.host_at(kernels[1]), (Interval{5, 10}));
  EXPECT_EQ(run.host_at(kernels[2]), (Interval{10, 105}));
  EXPECT_EQ(run.host_at(kernels[3]), (Interval{105, 205}));
  EXPECT_EQ(run.at(kernels[3]), (Interval{305, 405}));
}

// A task of two launches needs room for both, one of more launches than the queue holds an empty
// queue: they go at 205, when two tasks have ended, and at 305.
TEST(SimulateTest, EveryLaunchOfATaskNeedsRoom) {
  StepKit kit;
  const auto kernels = AddKernels(kit, {1, 1, 2, 9});
  const RunRecord run = kit.Run(WithQueue(2));
  EXPECT_EQ(run.host_at(kernels[2]), (Interval{10, 205}));
  EXPECT_EQ(run.host_at(kernels[3]), (Interval{205, 305}));
}

// Events take no room, nor do the launches of other streams.
TEST(SimulateTest, OnlyLaunchesOnTheComputeStreamNeedRoom) {
  StepKit kit;
  const auto kernels = AddKernels(kit, {1});
  const TaskId wait = kit.Wait(kCompute, {kernels.front()});
  const TaskId copy = kit.Kernel(kCopy, {100, 5});
  kit.SetLaunches(copy, 3);
  const RunRecord run = kit.Run(WithQueue(1));
  EXPECT_EQ(run.host_at(wait), (Interval{5, 5}));
  EXPECT_EQ(run.host_at(copy), (Interval{5, 10}));
}

// The queue lets the host run two kernels ahead of a GPU that needs 100 ns for each; behind them
// the host needs 300 ns for one, which the GPU would have had in time with a longer queue: 205 +
// 300 instead of 20 + 300.
TEST(SimulateTest, ShortQueueLeavesLessToWorkOn) {
  const auto end_with = [](int queue) {
    StepKit kit;
    AddKernels(kit, {1, 1, 1, 1});
    const TaskId slow = kit.Kernel(kCompute, {100, 300});
    kit.SetLaunches(slow, 1);
    return kit.Run(WithQueue(queue)).at(slow).end;
  };
  EXPECT_EQ(end_with(2), 205 + 300 + 100);
  EXPECT_EQ(end_with(0), 405 + 100);
}

// A view costs the host alone: the kernel behind it is issued at 7 + 5.
TEST(SimulateTest, TaskWithoutStreamTakesHostTime) {
  StepKit kit;
  kit.Host(7);
  const TaskId kernel = kit.Kernel(kCompute, {1, 5});
  EXPECT_EQ(kit.Run().at(kernel), (Interval{12, 13}));
}

// The kernel ends at 5 + 100. The host returns from the wait 10 ns later and works for 3 ns; the
// next kernel is issued at 118 + 5.
TEST(SimulateTest, HostBlocksForEventsAndPaysForTheReturn) {
  StepKit kit;
  const TaskId kernel = kit.Kernel(kCompute, {100, 5});
  const TaskId host = kit.Host(3, {kernel});
  const TaskId after = kit.Kernel(kCompute, {1, 5});
  SimulationOptions options = OneStep();
  options.synchronize = Duration::FromNs(10);
  const RunRecord run = kit.Run(options);
  EXPECT_EQ(run.host_at(host), (Interval{5, 118}));
  EXPECT_EQ(run.at(after), (Interval{123, 124}));
}

// The kernel has ended at 6, long before the host comes to its wait at 25.
TEST(SimulateTest, HostPaysNothingForAnEventThatHasPassed) {
  StepKit kit;
  const TaskId kernel = kit.Kernel(kCompute, {1, 5});
  kit.Kernel(kCopy, {1, 20});
  const TaskId host = kit.Host(3, {kernel});
  SimulationOptions options = OneStep();
  options.synchronize = Duration::FromNs(10);
  EXPECT_EQ(kit.Run(options).host_at(host), (Interval{25, 28}));
}

// Communicators.

// NCCL runs the collectives of one communicator in issue order: the second, on an idle stream,
// waits for the first.
TEST(SimulateTest, CommunicatorRunsOneCollectiveAtATime) {
  StepKit kit;
  kit.Collective(kGather, {50});
  const TaskId second = kit.Collective(kReduce, {20});
  EXPECT_EQ(kit.Run().at(second), (Interval{50, 70}));
}

// The first collective waits for a kernel until 100; the second, issued later, could start at once
// and still waits for it.
TEST(SimulateTest, CommunicatorKeepsIssueOrderBehindABlockedCollective) {
  StepKit kit;
  const TaskId kernel = kit.Kernel(kCompute, {100});
  const TaskId reduce = kit.Collective(kReduce, {10}, 0, {kernel});
  const TaskId gather = kit.Collective(kGather, {20});
  const RunRecord run = kit.Run();
  EXPECT_EQ(run.at(reduce), (Interval{100, 110}));
  EXPECT_EQ(run.at(gather), (Interval{110, 130}));
}

TEST(SimulateTest, TwoCommunicatorsOverlap) {
  StepKit kit;
  kit.Collective(kGather, {50}, 0);
  const TaskId second = kit.Collective(kReduce, {20}, 1);
  EXPECT_EQ(kit.Run().at(second), (Interval{0, 20}));
}

TEST(SimulateTest, KernelsRunBesideCollectives) {
  StepKit kit;
  kit.Collective(kGather, {50});
  const TaskId kernel = kit.Kernel(kCompute, {20});
  EXPECT_EQ(kit.Run().at(kernel), (Interval{0, 20}));
}

// Steps.

TEST(SimulateTest, GpuBoundStepsFollowBackToBack) {
  StepKit kit;
  kit.Kernel(kCompute, {30, 1});
  kit.Kernel(kCompute, {20, 1});
  const RunRecord run = kit.Run(Steps(3));
  EXPECT_EQ(EndsOf(run.result.step_ends), (std::vector<std::int64_t>{51, 101, 151}));
}

// Two calls of 10 ns a step; the last kernel runs 1 ns more after the last call.
TEST(SimulateTest, HostBoundStepsTakeTheHostsTime) {
  StepKit kit;
  kit.Kernel(kCompute, {1, 10});
  kit.Kernel(kCompute, {1, 10});
  const RunRecord run = kit.Run(Steps(3));
  EXPECT_EQ(EndsOf(run.result.step_ends), (std::vector<std::int64_t>{21, 41, 61}));
}

// The reduction of a step runs from 10 on for 100 ns; the next step's kernel does not wait for it.
// Then reductions follow each other: 110, 210.
TEST(SimulateTest, NextStepBeginsWhileTheLastOneEnds) {
  StepKit kit;
  const TaskId kernel = kit.Kernel(kCompute, {10});
  kit.Kernel(kReduce, {100}, {kernel});
  const RunRecord run = kit.Run(Steps(2));
  EXPECT_EQ(run.at(kernel, 1), (Interval{10, 20}));
  EXPECT_EQ(EndsOf(run.result.step_ends), (std::vector<std::int64_t>{110, 210}));
}

TEST(SimulateTest, EventOfAStepIsThatStepsOwn) {
  StepKit kit;
  const TaskId gather = kit.Kernel(kGather, {50});
  const TaskId use = kit.Kernel(kCompute, {10}, {gather});
  EXPECT_EQ(kit.Run(Steps(2)).at(use, 1), (Interval{100, 110}));
}

// gather [0, 10), reduction [10, 60), then the next step's gather: its stream is idle since 10.
TEST(SimulateTest, CommunicatorKeepsIssueOrderOverSteps) {
  StepKit kit;
  const TaskId gather = kit.Collective(kGather, {10});
  const TaskId reduce = kit.Collective(kReduce, {50});
  const RunRecord run = kit.Run(Steps(2));
  EXPECT_EQ(run.at(reduce, 0), (Interval{10, 60}));
  EXPECT_EQ(run.at(gather, 1), (Interval{60, 70}));
}

TEST(SimulateTest, StepEndsWithItsLastTaskOnTheHostToo) {
  StepKit kit;
  kit.Kernel(kCompute, {10});
  kit.Host(25);
  EXPECT_EQ(EndsOf(kit.Run(Steps(2)).result.step_ends), (std::vector<std::int64_t>{25, 50}));
}

TEST(SimulateTest, StepOfTheHostAloneEnds) {
  StepKit kit;
  kit.Host(25);
  EXPECT_EQ(EndsOf(kit.Run(Steps(2)).result.step_ends), (std::vector<std::int64_t>{25, 50}));
}

TEST(SimulateTest, StepWithoutTasksTakesNoTime) {
  StepKit kit;
  EXPECT_EQ(EndsOf(kit.Run(Steps(2)).result.step_ends), (std::vector<std::int64_t>{0, 0}));
}

// 51 ns the first step, then 50 ns each; the first measured step is the second one.
TEST(SimulateTest, MeasuredStepTimesLeaveWarmupOut) {
  StepKit kit;
  kit.Kernel(kCompute, {30, 1});
  kit.Kernel(kCompute, {20, 1});
  SimulationOptions options = Steps(2);
  options.warmup_steps = 1;
  const Simulation result = kit.Run(options).result;
  EXPECT_EQ(result.measured_step_times(1),
            (std::vector<Duration>{Duration::FromNs(50), Duration::FromNs(50)}));
  EXPECT_EQ(result.warmup_end, SimTime::FromNs(51));
}

TEST(SimulateTest, StepsAreReportedAsIssuedAndEnded) {
  StepKit kit;
  kit.Kernel(kCompute, {30, 10});
  const RunRecord run = kit.Run(Steps(2));
  ASSERT_EQ(run.issued.size(), 2U);
  EXPECT_EQ(run.issued[1].time, SimTime::FromNs(10));
  ASSERT_EQ(run.ended.size(), 2U);
  EXPECT_EQ(run.ended[1].time, SimTime::FromNs(70));
}

TEST(SimulateTest, TasksOfAllStepsAreCounted) {
  StepKit kit;
  kit.Kernel(kCompute, {30});
  kit.Host(1);
  EXPECT_EQ(kit.Run(Steps(3)).result.tasks_executed, 6U);
}

}  // namespace
}  // namespace dcsim
