#include "sim/engine/step_program.h"

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

using enum StreamRole;

TEST(StepProgramTest, WaitBecomesAPositionOnTheWaitedStream) {
  StepKit kit;
  kit.Kernel(kGather, {1});
  const TaskId gather = kit.Kernel(kGather, {1});
  const TaskId use = kit.Kernel(kCompute, {1}, {gather});
  const StepProgram program(kit.schedule(), kit.costs());
  ASSERT_EQ(program.waits(use.index()).size(), 1U);
  EXPECT_EQ(program.waits(use.index())[0].stream, static_cast<std::uint8_t>(kGather));
  EXPECT_EQ(program.waits(use.index())[0].position, 1U);
}

TEST(StepProgramTest, WaitForALaterTaskNeverPasses) {
  StepKit kit;
  const TaskId early = kit.Kernel(kCompute, {1}, {TaskId(1)});
  kit.Kernel(kGather, {1});
  const StepProgram program(kit.schedule(), kit.costs());
  ASSERT_EQ(program.waits(early.index()).size(), 1U);
  EXPECT_EQ(program.waits(early.index())[0].position, StreamWait::kNever);
}

TEST(StepProgramTest, CollectivesAreNumberedByCommunicator) {
  StepKit kit;
  kit.Collective(kGather, {1}, 0);
  const TaskId other = kit.Collective(kReduce, {1}, 1);
  const TaskId second = kit.Collective(kReduce, {1}, 0);
  const TaskId kernel = kit.Kernel(kCompute, {1});
  const StepProgram program(kit.schedule(), kit.costs());
  EXPECT_EQ(program.entry(other.index()).collective, 0U);
  EXPECT_EQ(program.entry(second.index()).collective, 1U);
  EXPECT_EQ(program.entry(kernel.index()).collective, StepProgram::kNoCollective);
  EXPECT_EQ(program.collectives_on(0), 2U);
  EXPECT_EQ(program.collectives_on(1), 1U);
}

TEST(StepProgramTest, PlacesBeginAnewInEachMicroStep) {
  StepKit kit;
  kit.Kernel(kCompute, {1});
  kit.Kernel(kCompute, {1});
  const TaskId gather = kit.Kernel(kGather, {1});
  TaskDraft draft;
  draft.micro_step = 1;
  draft.stream = kCompute;
  const TaskId first = kit.Add(draft, {1});
  draft.stream = kGather;
  const TaskId second = kit.Add(draft, {1});
  const StepProgram program(kit.schedule(), kit.costs());
  EXPECT_EQ(program.entry(gather.index()).position, 0U);
  EXPECT_EQ(program.entry(first.index()).position, 0U);
  EXPECT_EQ(program.entry(second.index()).position, 0U);
}

}  // namespace
}  // namespace dcsim
