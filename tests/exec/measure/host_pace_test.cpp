#include "exec/measure/host_pace.h"

#include <gtest/gtest.h>

#include "tests/support/tiny_graphs.h"

namespace dcsim::exec {
namespace {

/// TwoLayers, seven ops a micro-step.
Schedule StepsOf(int micro_steps) {
  PlanSpec spec = TinySpec(1);
  spec.options.gradient_accumulation_steps = micro_steps;
  return LowerTiny(spec, TwoLayers());
}

/// A GPU that is `behind` marks behind the host.
struct LaggingGpu {
  GpuMarks marks() {
    return {[this] { ++set; }, [this](std::size_t n) { return n + behind < set; }};
  }

  std::size_t behind = 0;
  std::size_t set = 0;
};

void RunStep(const Schedule& schedule, HostPace& pace) {
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    pace.BeforeTask(TaskId(i));
    pace.AfterTask(TaskId(i));
  }
}

std::vector<bool> Read(const HostReading& reading) {
  std::vector<bool> read;
  for (const auto& time : reading.times) {
    read.push_back(time.has_value());
  }
  return read;
}

TEST(HostPaceTest, AStretchIsAHundredOpsOrTheStep) {
  LaggingGpu gpu;
  const Schedule short_step = StepsOf(1);
  HostPace one(short_step, gpu.marks());
  RunStep(short_step, one);
  EXPECT_EQ(one.reading(1).ops, 7);
  EXPECT_EQ(Read(one.reading(1)), (std::vector<bool>{true}));
  EXPECT_GT(*one.reading(1).times[0], Duration());

  const Schedule long_step = StepsOf(43);  // 301 ops
  HostPace three(long_step, gpu.marks());
  RunStep(long_step, three);
  EXPECT_EQ(three.reading(1).ops, 100);
  EXPECT_EQ(Read(three.reading(1)), (std::vector<bool>{true, true, true}));
}

TEST(HostPaceTest, AStretchCountsWhereTheGpuIsNearAtBothOfItsEnds) {
  LaggingGpu gpu;
  const Schedule schedule = StepsOf(86);  // six stretches
  HostPace pace(schedule, {[&] {
                             ++gpu.set;
                             gpu.behind = gpu.set == 3 ? 3 : 2;  // far behind when the third ends
                           },
                           gpu.marks().passed});
  RunStep(schedule, pace);
  EXPECT_EQ(Read(pace.reading(1)), (std::vector<bool>{true, true, false, false, true, true}));
}

TEST(HostPaceTest, HalfOfTheStepsMustCount) {
  LaggingGpu gpu;
  gpu.behind = 10;
  const Schedule schedule = StepsOf(1);
  HostPace pace(schedule, gpu.marks());
  RunStep(schedule, pace);  // counts: nothing was launched before
  RunStep(schedule, pace);  // counts: less than two stretches were
  RunStep(schedule, pace);
  EXPECT_EQ(pace.reading(3).ops, 7);
  RunStep(schedule, pace);
  RunStep(schedule, pace);
  EXPECT_EQ(pace.reading(5).ops, 0);
  EXPECT_TRUE(pace.reading(5).times.empty());
}

}  // namespace
}  // namespace dcsim::exec
