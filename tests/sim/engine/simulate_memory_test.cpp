// When buffers come and go: allocator calls in host order, release modes, retries, held outputs.

#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

using enum StreamRole;

// Requests of 10 MiB or more get segments of their own size.
constexpr Bytes kPiece = Bytes::MiB(10);

/// Three tasks as ZeRO-3 issues them: a kernel uses a gathered parameter for 1000 ns, the host
/// releases it at once, and the next gather allocates as much.
struct ReleaseStep {
  explicit ReleaseStep(ReleaseMode release) {
    kit.UseAndRelease(kit.AddGathered(kPiece, release), kCompute, {1000});
    second = kit.AddGathered(kPiece, release);
  }

  /// The gather, and the release of what it allocated.
  void AddGather() { gather = kit.UseAndRelease(second, kGather, {1, 5}); }

  /// The same behind a wait of the host for the kernel.
  void AddGatherBehindTheKernel() {
    kit.Host(0, {TaskId(0)});
    AddGather();
  }

  StepKit kit;
  BufferId second;
  TaskId gather;
};

// The host frees the first buffer before the second is allocated, both at 0 ns: one block.
TEST(SimulateMemoryTest, EventOrderedReleaseIsReusedAtOnce) {
  ReleaseStep step(ReleaseMode::kEventOrdered);
  step.AddGather();
  const Simulation result = step.kit.Run().result;
  EXPECT_EQ(result.memory.reserved.peak, kPiece);
}

// The GPU uses the first buffer until 1000 ns, so the second needs memory of its own at 0 ns.
TEST(SimulateMemoryTest, RecordStreamReleaseIsReusedOnlyAfterTheGpuPassed) {
  ReleaseStep step(ReleaseMode::kRecordStream);
  step.AddGather();
  const Simulation result = step.kit.Run().result;
  EXPECT_EQ(result.memory.reserved.peak, kPiece * 2);
  EXPECT_EQ(result.memory.allocated.peak, kPiece);
  EXPECT_EQ(result.memory.active.peak, kPiece * 2);
}

// A host that has waited for the kernel finds the block free.
TEST(SimulateMemoryTest, RecordStreamReleaseIsReusedWhenTheGpuHasPassed) {
  ReleaseStep step(ReleaseMode::kRecordStream);
  step.AddGatherBehindTheKernel();
  EXPECT_EQ(step.kit.Run().result.memory.reserved.peak, kPiece);
}

SimulationOptions TightOptions(std::uint32_t steps = 1) {
  SimulationOptions options = Steps(steps);
  options.allocator.capacity = Bytes::MiB(15);
  options.synchronize = Duration::FromNs(10);
  return options;
}

// 15 MiB do not hold both. PyTorch waits for the GPU (until 1000 ns), gives the first block back to
// the driver and asks again: 10 ns for the return from the wait, 5 ns for the call.
TEST(SimulateMemoryTest, RetryWaitsForAllStreamsAndGoesOn) {
  ReleaseStep step(ReleaseMode::kRecordStream);
  step.AddGather();
  const RunRecord run = step.kit.Run(TightOptions());
  EXPECT_EQ(run.result.outcome, Outcome::kCompleted);
  EXPECT_EQ(run.result.memory.retries, 1);
  EXPECT_EQ(run.result.memory.reserved.peak, kPiece);
  EXPECT_EQ(run.host_at(step.gather), (Interval{0, 1015}));
  EXPECT_EQ(run.at(step.gather), (Interval{1015, 1016}));
}

// Not only for the stream whose event the block waits for.
TEST(SimulateMemoryTest, RetryWaitsForStreamsThatDoNotUseTheBlock) {
  ReleaseStep step(ReleaseMode::kRecordStream);
  step.kit.Kernel(kCopy, {3000});
  step.AddGather();
  EXPECT_EQ(step.kit.Run(TightOptions()).host_at(step.gather), (Interval{0, 3015}));
}

TEST(SimulateMemoryTest, RetryCountsAsWaiting) {
  ReleaseStep step(ReleaseMode::kRecordStream);
  step.AddGather();
  const RunRecord run = step.kit.Run(TightOptions());
  for (const HostSpan& span : run.host) {
    EXPECT_EQ(span.waited, span.task == step.gather);
  }
}

// One retry a step: what the second gather took is the next step's first block.
TEST(SimulateMemoryTest, RetriesOfWarmupAreNotCounted) {
  ReleaseStep step(ReleaseMode::kRecordStream);
  step.AddGather();
  SimulationOptions options = TightOptions(1);
  options.warmup_steps = 2;
  EXPECT_EQ(step.kit.Run(options).result.memory.retries, 1);
}

// A cudaFree and two cudaMallocs of 100 ns: one for the kernel's buffer, and two in the retry.
TEST(SimulateMemoryTest, DriverCallsTakeTimeOfTheHost) {
  ReleaseStep step(ReleaseMode::kRecordStream);
  step.AddGather();
  SimulationOptions options = TightOptions();
  options.segment = Duration::FromNs(100);
  const RunRecord run = step.kit.Run(options);
  EXPECT_EQ(run.at(TaskId(0)), (Interval{100, 1100}));
  EXPECT_EQ(run.host_at(step.gather), (Interval{100, 1100 + 2 * 100 + 10 + 5}));
}

// Beside the 5 ns of its call, the cudaFree of the retry takes a microsecond for its 10 MiB.
TEST(SimulateMemoryTest, WhatIsGivenBackTakesTimeByItsBytes) {
  ReleaseStep step(ReleaseMode::kRecordStream);
  step.AddGather();
  SimulationOptions options = TightOptions();
  options.give_back_rate = BytesPerSecond(kPiece.count() * 1'000'000);
  EXPECT_EQ(step.kit.Run(options).host_at(step.gather), (Interval{0, 1015 + 1000}));
}

// 7 ns to record the event behind the kernel; once that has passed, 3 ns to take the block back
// before the next allocation, and the gather's own 5.
TEST(SimulateMemoryTest, EventsOfTheAllocatorTakeTimeOfTheHost) {
  ReleaseStep step(ReleaseMode::kRecordStream);
  step.AddGatherBehindTheKernel();
  SimulationOptions options = Steps(1);
  options.record = Duration::FromNs(7);
  options.take_back = Duration::FromNs(3);
  EXPECT_EQ(step.kit.Run(options).host_at(TaskId(1)), (Interval{0, 7}));
  EXPECT_EQ(step.kit.Run(options).host_at(step.gather), (Interval{1000, 1008}));
  options.host_pace.assign(5, TaskPace{2, false});
  EXPECT_EQ(step.kit.Run(options).host_at(step.gather), (Interval{1000, 1016}));
}

// The reading of a task holds what the allocator did in it.
TEST(SimulateMemoryTest, EventsOfTheAllocatorCostNothingBesideAReading) {
  ReleaseStep step(ReleaseMode::kRecordStream);
  step.AddGatherBehindTheKernel();
  SimulationOptions options = Steps(1);
  options.take_back = Duration::FromNs(3);
  options.host_pace.assign(5, TaskPace{2, true});
  EXPECT_EQ(step.kit.Run(options).host_at(step.gather), (Interval{1000, 1010}));
}

// A block that only its own stream used needs no event.
TEST(SimulateMemoryTest, EventOrderedReleaseRecordsNothing) {
  ReleaseStep step(ReleaseMode::kEventOrdered);
  step.AddGather();
  SimulationOptions options = Steps(1);
  options.record = Duration::FromNs(7);
  options.take_back = Duration::FromNs(3);
  EXPECT_EQ(step.kit.Run(options).host_at(step.gather), (Interval{0, 5}));
}

// The second step finds its block in the cache; residents are allocated before time begins.
TEST(SimulateMemoryTest, CachedBlocksAndResidentsTakeNoDriverCalls) {
  StepKit kit;
  Buffer resident;
  resident.bytes = kPiece;
  resident.resident = true;
  kit.AddBuffer(resident);
  const BufferId buffer = kit.AddBuffer(kPiece);
  TaskDraft draft;
  draft.stream = kCompute;
  draft.Allocate(buffer);
  draft.Free(buffer);
  const TaskId kernel = kit.Add(draft, {10});
  SimulationOptions options = Steps(2);
  options.segment = Duration::FromNs(100);
  const RunRecord run = kit.Run(options);
  EXPECT_EQ(run.at(kernel, 0), (Interval{100, 110}));
  EXPECT_EQ(run.at(kernel, 1), (Interval{110, 120}));
}

// The caller keeps the loss until the next forward has returned: from the second step on two are
// alive between their allocation and the free.
TEST(SimulateMemoryTest, HeldBufferOverlapsTwoSteps) {
  StepKit kit;
  Buffer held;
  held.bytes = kPiece;
  held.carried = true;
  const BufferId buffer = kit.AddBuffer(held);
  TaskDraft forward;
  forward.stream = kCompute;
  forward.Allocate(buffer);
  kit.Add(forward, {10});
  TaskDraft free;
  free.kind = TaskKind::kFree;
  free.Free(buffer);
  kit.Add(free, {});
  const RunRecord run = kit.Run(Steps(3));
  std::vector<Bytes> live;
  for (const MemoryRecord& record : run.memory) {
    live.push_back(record.live);
  }
  EXPECT_EQ(live,
            (std::vector<Bytes>{Bytes(0), kPiece, kPiece, kPiece * 2, kPiece, kPiece * 2, kPiece}));
  EXPECT_EQ(run.result.live_after_step, kPiece);
}

TEST(SimulateMemoryTest, PeakLiveCountsWhatWasRequested) {
  StepKit kit;
  const BufferId buffer = kit.AddBuffer(Bytes(1000));
  TaskDraft draft;
  draft.stream = kCompute;
  draft.Allocate(buffer);
  draft.Free(buffer);
  kit.Add(draft, {10});
  const Simulation result = kit.Run().result;
  EXPECT_EQ(result.peak_live, Bytes(1000));
  EXPECT_EQ(result.memory.allocated.peak, Bytes(1024));  // blocks are multiples of 512 bytes
  EXPECT_EQ(result.live_after_step, Bytes(0));
}

// Allocator calls come before the host's own time of the task.
TEST(SimulateMemoryTest, MemoryIsReportedInHostOrder) {
  StepKit kit;
  const BufferId first = kit.AddBuffer(kPiece);
  const BufferId second = kit.AddBuffer(kPiece * 2);
  TaskDraft draft;
  draft.stream = kCompute;
  draft.Allocate(first);
  kit.Add(draft, {1000, 7});
  TaskDraft next;
  next.stream = kCompute;
  next.Free(first);
  next.Allocate(second);
  next.Free(second);
  kit.Add(next, {1000, 7});
  const RunRecord run = kit.Run();
  ASSERT_EQ(run.memory.size(), 3U);
  EXPECT_TRUE(run.memory[0].task.is_none());
  EXPECT_EQ(run.memory[1].time, SimTime::FromNs(0));
  EXPECT_EQ(run.memory[1].live, kPiece);
  EXPECT_EQ(run.memory[2].time, SimTime::FromNs(7));
  EXPECT_EQ(run.memory[2].live, Bytes(0));
  EXPECT_EQ(run.memory[2].reserved, kPiece * 3);
}

/// A task that takes and frees 64 MiB, and one behind it that takes `piece` for itself, and with it
/// the first step a resident of 32 MiB.
Bytes ReservedWithLateResident(Bytes piece) {
  StepKit kit;
  const auto temporary = [&kit](Bytes bytes) {
    Buffer buffer;
    buffer.bytes = bytes;
    const BufferId id = kit.AddBuffer(buffer);
    TaskDraft draft;
    draft.stream = kCompute;
    draft.Allocate(id);
    draft.Free(id);
    return kit.Add(draft, {1});
  };
  temporary(Bytes::MiB(64));
  Buffer resident;
  resident.bytes = Bytes::MiB(32);
  resident.resident = true;
  resident.first_user = temporary(piece);
  kit.AddBuffer(resident);
  return kit.Run().result.memory.reserved.peak;
}

// Piece and resident share what was freed before: there is no segment for the resident alone, as
// there would be if it came before all steps.
TEST(SimulateMemoryTest, LateResidentTakesWhatIsFreeThen) {
  EXPECT_EQ(ReservedWithLateResident(Bytes::MiB(16)), Bytes::MiB(64));
}

// The piece takes 40 of 64 MiB before it, so that it needs 32 more; the other way round the piece
// would need 40.
TEST(SimulateMemoryTest, LateResidentComesBehindItsTasksFirstBlock) {
  EXPECT_EQ(ReservedWithLateResident(Bytes::MiB(40)), Bytes::MiB(64 + 32));
}

// The second step allocates no second resident.
TEST(SimulateMemoryTest, LateResidentIsAllocatedOnce) {
  StepKit kit;
  TaskDraft draft;
  draft.stream = kCompute;
  Buffer resident;
  resident.bytes = kPiece;
  resident.resident = true;
  resident.first_user = kit.Add(draft, {1});
  kit.AddBuffer(resident);
  EXPECT_EQ(kit.Run(Steps(3)).result.memory.allocated.peak, kPiece);
}

}  // namespace
}  // namespace dcsim
