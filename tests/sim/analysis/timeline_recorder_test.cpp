#include "sim/analysis/timeline_recorder.h"

#include <array>

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

using enum StreamRole;

Timeline TimelineOf(StepKit& kit, std::uint32_t step) {
  TimelineRecorder recorder(step);
  const std::array<Observer*, 1> observers = {&recorder};
  Simulate(kit.schedule(), kit.costs(), Steps(step + 2), observers);
  return recorder.timeline();
}

// Steps end at 10 + 30, 70, 100: the kernel of step 1 runs from 40 to 70.
TEST(TimelineRecorderTest, TimesCountFromTheEndOfTheStepBefore) {
  StepKit kit;
  kit.Kernel(kCompute, {30, 10});
  const Timeline timeline = TimelineOf(kit, 1);
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(timeline.spans[0].start, SimTime::FromNs(0));
  EXPECT_EQ(timeline.spans[0].end, SimTime::FromNs(30));
  EXPECT_EQ(timeline.step_time, Duration::FromNs(30));
}

// The host issues step 1 from 10 to 20, and step 0 ends at 40.
TEST(TimelineRecorderTest, WorkBeforeTheStepHasNegativeTimes) {
  StepKit kit;
  kit.Kernel(kCompute, {30, 10});
  const Timeline timeline = TimelineOf(kit, 1);
  ASSERT_EQ(timeline.host.size(), 1U);
  EXPECT_EQ(timeline.host[0].start, SimTime::FromNs(-30));
  EXPECT_EQ(timeline.host[0].end, SimTime::FromNs(-20));
}

TEST(TimelineRecorderTest, FirstStepCountsFromZero) {
  StepKit kit;
  kit.Kernel(kCompute, {30, 10});
  const Timeline timeline = TimelineOf(kit, 0);
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(timeline.spans[0].start, SimTime::FromNs(10));
  EXPECT_EQ(timeline.step_time, Duration::FromNs(40));
}

TEST(TimelineRecorderTest, SpansKeepStreamStallAndBlocker) {
  StepKit kit;
  const TaskId gather = kit.Kernel(kGather, {50});
  kit.Kernel(kCompute, {10}, {gather});
  const Timeline timeline = TimelineOf(kit, 0);
  ASSERT_EQ(timeline.spans.size(), 2U);
  EXPECT_EQ(timeline.spans[1].stream, static_cast<std::uint8_t>(kCompute));
  EXPECT_EQ(timeline.spans[1].stall, StallReason::kEvent);
  EXPECT_EQ(timeline.spans[1].blocker, gather);
}

TEST(TimelineRecorderTest, SpansComeByTheirEnd) {
  StepKit kit;
  const TaskId late = kit.Kernel(kCompute, {50});
  const TaskId early = kit.Kernel(kGather, {10});
  const Timeline timeline = TimelineOf(kit, 0);
  ASSERT_EQ(timeline.spans.size(), 2U);
  EXPECT_EQ(timeline.spans[0].task, early);
  EXPECT_EQ(timeline.spans[1].task, late);
}

// Residents and the other steps are left out; 1000 bytes take a block of 1024.
TEST(TimelineRecorderTest, MemoryOfTheStepIsKept) {
  StepKit kit;
  const BufferId buffer = kit.AddBuffer(Bytes(1000));
  TaskDraft draft;
  draft.stream = kCompute;
  draft.Allocate(buffer);
  kit.Add(draft, {30, 10});
  TaskDraft free;
  free.kind = TaskKind::kFree;
  free.Free(buffer);
  kit.Add(free, {});
  const Timeline timeline = TimelineOf(kit, 0);
  ASSERT_EQ(timeline.memory.size(), 2U);
  EXPECT_EQ(timeline.memory[0].live, Bytes(1000));
  EXPECT_EQ(timeline.memory[0].allocated, Bytes(1024));
  EXPECT_EQ(timeline.memory[0].active, Bytes(1024));
  EXPECT_EQ(timeline.memory[0].reserved, Bytes::MiB(2));
  EXPECT_EQ(timeline.memory[1].time, SimTime::FromNs(10));
  EXPECT_EQ(timeline.memory[1].live, Bytes(0));
}

TEST(TimelineRecorderTest, TimelineIsPredicted) {
  StepKit kit;
  kit.Kernel(kCompute, {30});
  EXPECT_EQ(TimelineOf(kit, 0).origin, Origin::kPredicted);
}

}  // namespace
}  // namespace dcsim
