// What streams that wait for events cost the kernels of compute (docs/design/costs/side_streams.md,
// Waiting streams).

#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

using enum StreamRole;

/// Of one stream, in ns.
void SetDelay(SimulationOptions& options, StreamRole stream, std::int64_t ns) {
  options.waiting_delays[static_cast<std::size_t>(stream)] = Duration::FromNs(ns);
}

SimulationOptions CopyDelays(std::int64_t ns) {
  SimulationOptions options = OneStep();
  SetDelay(options, kCopy, ns);
  return options;
}

TaskId Kernels(StepKit& kit, TaskTime time, std::int32_t launches) {
  const TaskId task = kit.Kernel(kCompute, time);
  kit.SetLaunches(task, launches);
  return task;
}

// The copy is issued at 15 and waits for the second op, whose two kernels each start 3 ns later:
// 105 + 100 + 2 * 3. The third starts as the copy does, which waits no more.
TEST(SimulateWaitingTest, KernelsStartLaterWhileAStreamWaits) {
  StepKit kit;
  const TaskId first = Kernels(kit, {100, 5}, 2);
  const TaskId second = Kernels(kit, {100, 5}, 2);
  const TaskId copy = kit.Kernel(kCopy, {10, 5}, {second});
  const TaskId third = Kernels(kit, {100, 5}, 2);
  const RunRecord run = kit.Run(CopyDelays(3));
  EXPECT_EQ(run.at(first), (Interval{5, 105}));
  EXPECT_EQ(run.at(second), (Interval{105, 211}));
  EXPECT_EQ(run.at(copy), (Interval{211, 221}));
  EXPECT_EQ(run.at(third), (Interval{211, 311}));
}

// The host needs until 150 to issue the copy; the op that it waits for started at 105.
TEST(SimulateWaitingTest, StreamWaitsFromItsIssueOn) {
  StepKit kit;
  Kernels(kit, {100, 5}, 1);
  const TaskId second = Kernels(kit, {100, 5}, 1);
  kit.Kernel(kCopy, {10, 140}, {second});
  EXPECT_EQ(kit.Run(CopyDelays(3)).at(second), (Interval{105, 205}));
}

TEST(SimulateWaitingTest, DelaysOfSeveralStreamsAddUp) {
  StepKit kit;
  Kernels(kit, {100, 5}, 1);
  const TaskId second = Kernels(kit, {100, 5}, 1);
  const TaskId copy = kit.Kernel(kCopy, {10, 5}, {second});
  kit.Kernel(kReduce, {10, 5}, {copy});
  SimulationOptions options = CopyDelays(3);
  SetDelay(options, kReduce, 4);
  EXPECT_EQ(kit.Run(options).at(second), (Interval{105, 212}));
}

// While its own kernel runs a stream does not wait, whatever waits behind that kernel.
TEST(SimulateWaitingTest, StreamThatRunsDelaysNothing) {
  StepKit kit;
  Kernels(kit, {100, 5}, 1);
  const TaskId second = Kernels(kit, {100, 5}, 1);
  kit.Kernel(kCopy, {500, 5});
  kit.Kernel(kCopy, {10, 5}, {second});
  EXPECT_EQ(kit.Run(CopyDelays(3)).at(second), (Interval{105, 205}));
}

// NCCL lets a collective wait on its stream for the one before it on its communicator.
TEST(SimulateWaitingTest, StreamThatItsCommunicatorHoldsBackWaits) {
  StepKit kit;
  const TaskId first = Kernels(kit, {100, 5}, 1);
  kit.Collective(kGather, {300, 5});
  kit.Collective(kReduce, {10, 5});
  const TaskId second = Kernels(kit, {100, 5}, 1);
  SimulationOptions options = OneStep();
  SetDelay(options, kReduce, 4);
  const RunRecord run = kit.Run(options);
  EXPECT_EQ(run.at(first), (Interval{5, 105}));
  EXPECT_EQ(run.at(second), (Interval{105, 209}));
}

// Tasks of other streams, and waits, launch no kernel of compute.
TEST(SimulateWaitingTest, OnlyComputeIsDelayed) {
  StepKit kit;
  Kernels(kit, {100, 5}, 1);
  const TaskId second = Kernels(kit, {100, 5}, 1);
  kit.Kernel(kCopy, {10, 5}, {second});
  const TaskId gather = kit.Kernel(kGather, {50, 5});
  kit.SetLaunches(gather, 1);
  const TaskId behind = kit.Kernel(kGather, {50, 5});
  kit.SetLaunches(behind, 1);
  const RunRecord run = kit.Run(CopyDelays(3));
  EXPECT_EQ(run.at(gather), (Interval{20, 70}));
  EXPECT_EQ(run.at(behind), (Interval{70, 120}));
}

}  // namespace
}  // namespace dcsim
