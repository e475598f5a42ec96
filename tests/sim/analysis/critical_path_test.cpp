#include "sim/analysis/critical_path.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "sim/analysis/timeline_recorder.h"
#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

using enum StreamRole;

/// "host before 0 [0, 5], 0 [5, 15]": the pieces of the path through one step.
std::string PathText(StepKit& kit,
                     std::uint32_t step = 0,
                     const SimulationOptions& options = Steps(4)) {
  TimelineRecorder recorder(step);
  const std::array<Observer*, 1> observers = {&recorder};
  Simulate(kit.schedule(), kit.costs(), options, observers);
  std::string text;
  for (const CriticalPiece& piece : FindStepCriticalPath(recorder.timeline(), kit.schedule())) {
    text += (text.empty() ? "" : ", ") + std::string(piece.on_host ? "host before " : "") +
            std::to_string(piece.task.index()) + " [" + std::to_string(piece.start.ns()) + ", " +
            std::to_string(piece.end.ns()) + "]";
  }
  return text;
}

TEST(CriticalPathTest, FollowsAStream) {
  StepKit kit;
  kit.Kernel(kCompute, {10});
  kit.Kernel(kCompute, {20});
  EXPECT_EQ(PathText(kit), "0 [0, 10], 1 [10, 30]");
}

// Kernel 0, gather 1 behind it, kernel 3 behind the gather; kernel 2 is not on the path.
TEST(CriticalPathTest, FollowsEventsBetweenStreams) {
  StepKit kit;
  const TaskId first = kit.Kernel(kCompute, {10});
  const TaskId gather = kit.Collective(kGather, {50}, 0, {first});
  kit.Kernel(kCompute, {20});
  kit.Kernel(kCompute, {5}, {gather});
  EXPECT_EQ(PathText(kit), "0 [0, 10], 1 [10, 60], 3 [60, 65]");
}

TEST(CriticalPathTest, FollowsACommunicator) {
  StepKit kit;
  kit.Collective(kGather, {50});
  kit.Collective(kReduce, {20});
  EXPECT_EQ(PathText(kit), "0 [0, 50], 1 [50, 70]");
}

TEST(CriticalPathTest, WaitsWithoutLengthLeadOn) {
  StepKit kit;
  const TaskId gather = kit.Kernel(kGather, {50});
  kit.Wait(kCompute, {gather});
  kit.Kernel(kCompute, {5});
  EXPECT_EQ(PathText(kit), "0 [0, 50], 2 [50, 55]");
}

// The host issues for 20 ns, the last kernel runs for 1 ns.
TEST(CriticalPathTest, HostBoundStepIsOneStretchOfTheHost) {
  StepKit kit;
  kit.Kernel(kCompute, {1, 10});
  kit.Kernel(kCompute, {1, 10});
  EXPECT_EQ(PathText(kit), "host before 1 [0, 20], 1 [20, 21]");
}

// The host waits for kernel 0 until 105 and then works for 3 + 5 ns.
TEST(CriticalPathTest, HostStretchBeginsWhereTheHostLastWaited) {
  StepKit kit;
  const TaskId kernel = kit.Kernel(kCompute, {100, 5});
  kit.Host(3, {kernel});
  kit.Kernel(kCompute, {1, 5});
  EXPECT_EQ(PathText(kit),
            "host before 0 [0, 5], 0 [5, 105], host before 2 [105, 113], 2 [113, 114]");
}

// In the steady state the first kernel starts when the last one of the step before ends.
TEST(CriticalPathTest, GpuBoundStepBeginsAtItsFirstTask) {
  StepKit kit;
  kit.Kernel(kCompute, {30, 1});
  kit.Kernel(kCompute, {20, 1});
  EXPECT_EQ(PathText(kit, 2), "0 [0, 30], 1 [30, 50]");
}

// In the steady state steps end every 20 ns, 1 ns after the host; so the step's stretch begins
// where the step before ended.
TEST(CriticalPathTest, HostBoundSteadyStepTilesTheStep) {
  StepKit kit;
  kit.Kernel(kCompute, {1, 10});
  kit.Kernel(kCompute, {1, 10});
  EXPECT_EQ(PathText(kit, 2), "host before 1 [0, 19], 1 [19, 20]");
}

// The reduction starts at 10 and the step ends at 110; the next step's kernel has run from 10 to
// 20, before that: the path of step 1 is the reduction alone, from 110 to 210.
TEST(CriticalPathTest, WhatBeganBeforeTheStepIsCutOff) {
  StepKit kit;
  const TaskId kernel = kit.Kernel(kCompute, {10});
  kit.Kernel(kReduce, {100}, {kernel});
  EXPECT_EQ(PathText(kit, 1), "1 [0, 100]");
}

// The second gather's allocation waits for everything: for the copy until 3000, not for the kernel
// that uses the block until 1000.
TEST(CriticalPathTest, RetryLeadsToTheLastTaskOfAllStreams) {
  StepKit kit;
  Buffer buffer;
  buffer.bytes = Bytes::MiB(10);
  buffer.pool = static_cast<std::uint8_t>(kGather);
  buffer.recorded_streams = StreamBit(kCompute);
  const BufferId first = kit.AddBuffer(buffer);
  const BufferId second = kit.AddBuffer(buffer);
  TaskDraft use;
  use.stream = kCompute;
  use.Allocate(first);
  kit.Add(use, {1000});
  kit.Kernel(kCopy, {3000});
  TaskDraft release;
  release.kind = TaskKind::kRelease;
  release.Free(first);
  kit.Add(release, {});
  TaskDraft gather;
  gather.stream = kGather;
  gather.Allocate(second);
  kit.Add(gather, {1, 5});
  SimulationOptions options = OneStep();
  options.allocator.capacity = Bytes::MiB(15);
  EXPECT_EQ(PathText(kit, 0, options), "1 [0, 3000], host before 3 [3000, 3005], 3 [3005, 3006]");
}

TEST(CriticalPathTest, StepWithoutTasksHasNoPath) {
  StepKit kit;
  kit.Host(5);
  EXPECT_EQ(PathText(kit), "");
}

}  // namespace
}  // namespace dcsim
