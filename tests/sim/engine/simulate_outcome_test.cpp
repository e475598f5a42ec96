// Out of memory and deadlock are outcomes that say where the run stopped.

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

using enum StreamRole;

// Requests of 10 MiB or more get segments of their own size: a capacity of 25 MiB holds two.
constexpr Bytes kPiece = Bytes::MiB(10);

SimulationOptions Room(Bytes capacity, std::uint32_t steps = 1) {
  SimulationOptions options = Steps(steps);
  options.allocator.capacity = capacity;
  return options;
}

TaskId AllocatingKernel(StepKit& kit, BufferId buffer) {
  TaskDraft draft;
  draft.stream = kCompute;
  draft.Allocate(buffer);
  return kit.Add(draft, {10, 1});
}

Buffer Resident(Bytes bytes) {
  Buffer buffer;
  buffer.bytes = bytes;
  buffer.resident = true;
  return buffer;
}

TEST(SimulateOutcomeTest, RunThatEndsIsCompleted) {
  StepKit kit;
  kit.Kernel(kCompute, {10});
  const Simulation result = kit.Run().result;
  EXPECT_EQ(result.outcome, Outcome::kCompleted);
  EXPECT_FALSE(result.stop.has_value());
}

TEST(SimulateOutcomeTest, OutOfMemoryNamesTaskAndRequest) {
  StepKit kit;
  AllocatingKernel(kit, kit.AddBuffer(kPiece));
  AllocatingKernel(kit, kit.AddBuffer(kPiece));
  const TaskId third = AllocatingKernel(kit, kit.AddBuffer(kPiece));
  const Simulation result = kit.Run(Room(Bytes::MiB(25))).result;
  EXPECT_EQ(result.outcome, Outcome::kOutOfMemory);
  ASSERT_TRUE(result.stop.has_value());
  EXPECT_EQ(result.stop->task, third);
  EXPECT_EQ(result.stop->step, 0U);
  EXPECT_EQ(result.stop->requested, kPiece);
}

TEST(SimulateOutcomeTest, OutOfMemoryReportsWhatWasAlive) {
  StepKit kit;
  AllocatingKernel(kit, kit.AddBuffer(kPiece));
  AllocatingKernel(kit, kit.AddBuffer(kPiece));
  AllocatingKernel(kit, kit.AddBuffer(kPiece));
  const Simulation result = kit.Run(Room(Bytes::MiB(25))).result;
  EXPECT_EQ(result.peak_live, Bytes::MiB(20));
  EXPECT_EQ(result.memory.allocated.peak, Bytes::MiB(20));
  EXPECT_EQ(result.memory.retries, 1);
}

// Sizes up to 2^51 bytes come through the readers; the replay keeps sizes in 32 bits of 512 bytes.
TEST(SimulateOutcomeTest, RequestBeyondAnyGpuIsRefused) {
  StepKit kit;
  const BufferId cached = kit.AddBuffer(kPiece);
  TaskDraft first;
  first.stream = kCompute;
  first.Allocate(cached);
  first.Free(cached);
  kit.Add(first, {10, 1});
  const TaskId huge = AllocatingKernel(kit, kit.AddBuffer(Bytes::GiB(std::int64_t{1} << 21)));
  const Simulation result = kit.Run(Room(Bytes::GiB(100))).result;
  EXPECT_EQ(result.outcome, Outcome::kOutOfMemory);
  ASSERT_TRUE(result.stop.has_value());
  EXPECT_EQ(result.stop->task, huge);
}

TEST(SimulateOutcomeTest, OutOfMemoryMayComeInALaterStep) {
  StepKit kit;
  Buffer held;
  held.bytes = kPiece;
  held.carried = true;
  const BufferId buffer = kit.AddBuffer(held);
  const TaskId kernel = AllocatingKernel(kit, buffer);
  TaskDraft release;
  release.kind = TaskKind::kFree;
  release.Free(buffer);  // the one of the step before
  kit.Add(release, {});
  const Simulation result = kit.Run(Room(Bytes::MiB(15), 3)).result;
  EXPECT_EQ(result.outcome, Outcome::kOutOfMemory);
  ASSERT_TRUE(result.stop.has_value());
  EXPECT_EQ(result.stop->task, kernel);
  EXPECT_EQ(result.stop->step, 1U);
  EXPECT_EQ(result.step_ends.size(), 1U);
}

TEST(SimulateOutcomeTest, ResidentsThatDoNotFitNameNoTask) {
  StepKit kit;
  kit.AddBuffer(Resident(kPiece));
  kit.AddBuffer(Resident(Bytes::MiB(16)));
  kit.Kernel(kCompute, {10});
  const Simulation result = kit.Run(Room(Bytes::MiB(25))).result;
  EXPECT_EQ(result.outcome, Outcome::kOutOfMemory);
  ASSERT_TRUE(result.stop.has_value());
  EXPECT_TRUE(result.stop->task.is_none());
  EXPECT_EQ(result.stop->requested, Bytes::MiB(16));
  EXPECT_EQ(result.peak_live, kPiece);
  EXPECT_EQ(result.tasks_executed, 0U);
}

TEST(SimulateOutcomeTest, WaitForALaterTaskIsADeadlock) {
  StepKit kit;
  const TaskId first = kit.Kernel(kCompute, {10}, {TaskId(1)});
  kit.Kernel(kGather, {10});
  const Simulation result = kit.Run().result;
  EXPECT_EQ(result.outcome, Outcome::kDeadlock);
  ASSERT_TRUE(result.stop.has_value());
  EXPECT_EQ(result.stop->task, first);
  EXPECT_TRUE(result.step_ends.empty());
}

// The kernel waits for the gather, which waits for a task behind both: the gather is to blame,
// although the compute stream comes first.
TEST(SimulateOutcomeTest, DeadlockNamesTheFirstTaskInIssueOrder) {
  StepKit kit;
  const TaskId gather = kit.Kernel(kGather, {10}, {TaskId(2)});
  kit.Kernel(kCompute, {10}, {gather});
  kit.Kernel(kCopy, {10});
  const Simulation result = kit.Run().result;
  ASSERT_TRUE(result.stop.has_value());
  EXPECT_EQ(result.stop->task, gather);
}

TEST(SimulateOutcomeTest, HostThatWaitsForALaterTaskIsADeadlock) {
  StepKit kit;
  kit.Kernel(kCompute, {10});
  const TaskId host = kit.Host(1, {TaskId(2)});
  kit.Kernel(kCompute, {10});
  const Simulation result = kit.Run().result;
  EXPECT_EQ(result.outcome, Outcome::kDeadlock);
  ASSERT_TRUE(result.stop.has_value());
  EXPECT_EQ(result.stop->task, host);
}

TEST(SimulateOutcomeTest, DeadlockHasNoRequest) {
  StepKit kit;
  kit.Kernel(kCompute, {10}, {TaskId(0)});
  const Simulation result = kit.Run().result;
  ASSERT_TRUE(result.stop.has_value());
  EXPECT_EQ(result.stop->requested, Bytes(0));
}

TEST(SimulateOutcomeTest, OutcomesHaveNames) {
  EXPECT_EQ(OutcomeName(Outcome::kCompleted), "completed");
  EXPECT_EQ(OutcomeName(Outcome::kOutOfMemory), "out_of_memory");
  EXPECT_EQ(OutcomeName(Outcome::kDeadlock), "deadlock");
}

}  // namespace
}  // namespace dcsim
