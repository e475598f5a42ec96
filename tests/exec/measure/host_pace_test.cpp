#include "exec/measure/host_pace.h"

#include <gtest/gtest.h>

#include "tests/support/tiny_graphs.h"

namespace dcsim::exec {
namespace {

/// TwoLayers, seven ops a micro-step, behind which the host waits only at the end of a step.
Schedule StepsOf(int micro_steps) {
  PlanSpec spec = TinySpec(1);
  spec.options.gradient_accumulation_steps = micro_steps;
  return LowerTiny(spec, TwoLayers());
}

TEST(HostPaceTest, FirstOpsAreThoseBeforeTheHostWaits) {
  EXPECT_EQ(FirstOps(StepsOf(1)), 7U);
  EXPECT_EQ(FirstOps(StepsOf(42)), 294U);
}

TEST(HostPaceTest, FirstOpsAreThreeHundredAtMost) {
  EXPECT_EQ(FirstOps(StepsOf(43)), 300U);
}

void RunStep(const Schedule& schedule, HostPace& pace) {
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    pace.BeforeTask(TaskId(i));
    pace.AfterTask(TaskId(i));
  }
}

TEST(HostPaceTest, StepsCountInWhichTheGpuHasCaughtUp) {
  const Schedule schedule = StepsOf(1);
  int asked = 0;
  HostPace pace(schedule, [&] { return ++asked > 2; });  // from the third step on
  for (int step = 0; step < 4; ++step) {
    RunStep(schedule, pace);
  }
  EXPECT_EQ(asked, 4);
  const HostReading reading = pace.reading(4);
  EXPECT_EQ(reading.ops, 7);
  EXPECT_GT(reading.time, Duration());
  EXPECT_EQ(pace.reading(5).ops, 0);  // two of five
}

}  // namespace
}  // namespace dcsim::exec
