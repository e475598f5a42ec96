#include "exec/measure/host_pace.h"

#include <chrono>
#include <thread>

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

std::vector<HostReading> ReadingsOf(const Schedule& schedule, int steps, const GpuMarks& marks) {
  HostPace pace(schedule, 100, marks);
  for (int step = 0; step < steps; ++step) {
    RunStep(schedule, pace);
  }
  return pace.TakeReadings();
}

TEST(HostPaceTest, AStretchIsAHundredOpsOrTheStep) {
  LaggingGpu gpu;
  const auto one = ReadingsOf(StepsOf(1), 1, gpu.marks());
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].ops, 7);
  EXPECT_EQ(Read(one[0]), (std::vector<bool>{true}));
  EXPECT_GT(*one[0].times[0], Duration());

  const auto four = ReadingsOf(StepsOf(43), 1, gpu.marks());  // 301 ops
  ASSERT_EQ(four.size(), 1U);
  EXPECT_EQ(four[0].ops, 100);
  EXPECT_EQ(Read(four[0]), (std::vector<bool>{true, true, true, true}));
}

// A stretch lasts until the next begins, or the step ends: with it tasks behind the last op.
TEST(HostPaceTest, OpsAndTasksBetweenThemCountApart) {
  const Schedule schedule = StepsOf(1);
  LaggingGpu gpu;
  HostPace pace(schedule, 100, gpu.marks());
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    pace.BeforeTask(TaskId(i));
    if (schedule.task(TaskId(i)).kind == TaskKind::kOptimizerStep) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    pace.AfterTask(TaskId(i));
  }
  const auto readings = pace.TakeReadings();
  ASSERT_EQ(readings.size(), 1U);
  ASSERT_EQ(readings[0].between.size(), 1U);
  EXPECT_GE(*readings[0].between[0], Duration::FromNs(20'000'000));
  EXPECT_LT(*readings[0].times[0], Duration::FromNs(20'000'000));
}

TEST(HostPaceTest, AStretchCountsWhereTheGpuIsNearAtBothOfItsEnds) {
  LaggingGpu gpu;
  const Schedule schedule = StepsOf(86);  // 602 ops, seven stretches
  const auto readings = ReadingsOf(schedule, 1,
                                   {[&] {
                                      ++gpu.set;
                                      // far behind when the third ends
                                      gpu.behind = gpu.set == 3 ? 3 : 2;
                                    },
                                    gpu.marks().passed});
  ASSERT_EQ(readings.size(), 1U);
  EXPECT_EQ(Read(readings[0]), (std::vector<bool>{true, true, false, false, true, true, true}));
  EXPECT_FALSE(readings[0].between[2].has_value());
}

TEST(HostPaceTest, AFirstStepIsOneStretchOfWhatCounts) {
  const auto ns = [](std::int64_t count) { return std::optional(Duration::FromNs(count)); };
  HostReading reading;
  reading.ops = 10;
  reading.times = {ns(5), std::nullopt, ns(7)};
  reading.between = {ns(100), std::nullopt, ns(20)};
  const HostReading whole = AsOneStretch(reading);
  EXPECT_EQ(whole.ops, 20);
  EXPECT_EQ(whole.times, std::vector{ns(12)});
  EXPECT_EQ(whole.between, std::vector{ns(120)});

  reading.times = {std::nullopt, std::nullopt, std::nullopt};
  EXPECT_EQ(AsOneStretch(reading).ops, 0);
  EXPECT_TRUE(AsOneStretch(reading).times.empty());
}

TEST(HostPaceTest, StepsOfWhichNothingCountsAreNotRead) {
  LaggingGpu gpu;
  gpu.behind = 10;
  const auto readings = ReadingsOf(StepsOf(1), 3, gpu.marks());
  ASSERT_EQ(readings.size(), 3U);
  EXPECT_EQ(readings[0].ops, 7);  // nothing was launched before
  EXPECT_EQ(readings[1].ops, 7);  // less than two stretches were
  EXPECT_EQ(readings[2].ops, 0);
  EXPECT_TRUE(readings[2].times.empty());
}

}  // namespace
}  // namespace dcsim::exec
