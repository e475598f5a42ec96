// Why a task did not start earlier, and whose end let it start.

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

using enum StreamRole;

TEST(SimulateStallTest, FirstTaskOfAStreamWaitsForTheHost) {
  StepKit kit;
  const TaskId task = kit.Kernel(kCompute, {10, 5});
  const RunRecord run = kit.Run();
  EXPECT_EQ(run.span(task).stall, StallReason::kHost);
  EXPECT_TRUE(run.span(task).blocker.is_none());
}

TEST(SimulateStallTest, TaskRightBehindAnotherDoesNotStall) {
  StepKit kit;
  const TaskId first = kit.Kernel(kCompute, {10, 5});
  const TaskId second = kit.Kernel(kCompute, {10, 5});
  const RunRecord run = kit.Run();
  EXPECT_EQ(run.span(second).stall, StallReason::kNone);
  EXPECT_EQ(run.span(second).blocker, first);
}

// The first ends at 15, the second is issued at 25.
TEST(SimulateStallTest, TaskIssuedLateWaitsForTheHost) {
  StepKit kit;
  kit.Kernel(kCompute, {10, 5});
  const TaskId second = kit.Kernel(kCompute, {10, 20});
  const RunRecord run = kit.Run();
  EXPECT_EQ(run.span(second).stall, StallReason::kHost);
  EXPECT_TRUE(run.span(second).blocker.is_none());
}

// The first ends at 5 + 20, which is when the host issues the second: the stream never idles.
TEST(SimulateStallTest, TaskIssuedTheMomentItsStreamIsFreeDoesNotStall) {
  StepKit kit;
  const TaskId first = kit.Kernel(kCompute, {20, 5});
  const TaskId second = kit.Kernel(kCompute, {10, 20});
  const RunRecord run = kit.Run();
  EXPECT_EQ(run.span(second).stall, StallReason::kNone);
  EXPECT_EQ(run.span(second).blocker, first);
}

TEST(SimulateStallTest, EventStallNamesTheTaskWaitedFor) {
  StepKit kit;
  kit.Kernel(kCompute, {10});
  const TaskId gather = kit.Kernel(kGather, {50});
  const TaskId use = kit.Kernel(kCompute, {10}, {gather});
  const RunRecord run = kit.Run();
  EXPECT_EQ(run.span(use).stall, StallReason::kEvent);
  EXPECT_EQ(run.span(use).blocker, gather);
}

class EventOrderTest : public testing::TestWithParam<bool> {};

TEST_P(EventOrderTest, LatestEventIsNamed) {
  StepKit kit;
  const TaskId late = kit.Kernel(kReduce, {80});
  const TaskId early = kit.Kernel(kGather, {50});
  const bool late_first = GetParam();
  const TaskId use =
      kit.Kernel(kCompute, {10}, {late_first ? late : early, late_first ? early : late});
  EXPECT_EQ(kit.Run().span(use).blocker, late);
}

INSTANTIATE_TEST_SUITE_P(Waits, EventOrderTest, testing::Bool());

// At 100 the kernel ends, and with it a wait on the gather stream. The copy waits for the kernel
// alone.
TEST(SimulateStallTest, EventStallNamesTheTaskAmongThoseThatEndTogether) {
  StepKit kit;
  const TaskId kernel = kit.Kernel(kCompute, {100});
  kit.Wait(kGather, {kernel});
  const TaskId copy = kit.Kernel(kCopy, {10}, {kernel});
  EXPECT_EQ(kit.Run().span(copy).blocker, kernel);
}

TEST(SimulateStallTest, CommunicatorStallNamesTheCollectiveBefore) {
  StepKit kit;
  const TaskId first = kit.Collective(kGather, {50});
  const TaskId second = kit.Collective(kReduce, {20});
  const RunRecord run = kit.Run();
  EXPECT_EQ(run.span(second).stall, StallReason::kCommunicator);
  EXPECT_EQ(run.span(second).blocker, first);
}

// Its event passes at 30, its communicator is free at 50: what came last is the reason.
TEST(SimulateStallTest, LastOfSeveralReasonsIsNamed) {
  StepKit kit;
  const TaskId gather = kit.Collective(kGather, {50});
  const TaskId kernel = kit.Kernel(kCompute, {30});
  const TaskId reduce = kit.Collective(kReduce, {20}, 0, {kernel});
  const RunRecord run = kit.Run();
  EXPECT_EQ(run.span(reduce).stall, StallReason::kCommunicator);
  EXPECT_EQ(run.span(reduce).blocker, gather);
}

TEST(SimulateStallTest, HostThatBlockedSaysSo) {
  StepKit kit;
  const TaskId kernel = kit.Kernel(kCompute, {100, 5});
  kit.Host(3, {kernel});
  kit.Host(3, {kernel});
  const RunRecord run = kit.Run();
  ASSERT_EQ(run.host.size(), 3U);
  EXPECT_FALSE(run.host[0].waited);
  EXPECT_TRUE(run.host[1].waited);
  EXPECT_FALSE(run.host[2].waited);
}

}  // namespace
}  // namespace dcsim
