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

TEST(StepProgramTest, PlacesBeginAnewWithEachPeriodOfMicroSteps) {
  StepKit kit;
  kit.Kernel(kCompute, {1});
  TaskDraft draft;
  const auto add = [&](std::uint16_t micro_step, StreamRole stream) {
    draft.micro_step = micro_step;
    draft.stream = stream;
    return kit.Add(draft, {1}).index();
  };
  const std::size_t third = add(3, kCompute);
  const std::size_t fourth = add(4, kCompute);
  const std::size_t gather = add(5, kGather);
  const std::size_t ninth = add(9, kGather);
  const StepProgram program(kit.schedule(), kit.costs());
  EXPECT_EQ(program.entry(third).position, 1U);
  EXPECT_EQ(program.entry(fourth).position, 0U);
  EXPECT_EQ(program.entry(gather).position, 0U);
  EXPECT_EQ(program.entry(ninth).position, 0U);
}

}  // namespace
}  // namespace dcsim
