#include "sim/analysis/step_clock.h"

#include <cmath>

#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/passes/resolve.h"
#include "tests/sim/test_cluster.h"

namespace dcsim {
namespace {

/// A sum over 4 GB, which takes 4 ms of HandCluster's 1 TB/s, and little else. 300 W at most, 100
/// of them idle; `watts` more of the sum at 1000 MHz, where it was measured. Its time goes with
/// (1 / clock)^slows.
struct LongSum {
  LongSum(double watts, double slows) {
    PowerModel power;
    power.limit_watts = 300;
    power.idle_watts = 100;
    power.highest_mhz = 1000;
    power.profiled_mhz = 1000;
    power.exponent = 2;
    power.watts[static_cast<std::size_t>(DeviceUse::kStreaming)] = watts;
    power.slows[static_cast<std::size_t>(DeviceUse::kStreaming)] = slows;
    cluster.gpu.power = power;
  }
  Schedule schedule() const { return LowerFor(plan, inputs); }
  double Clock() const { return FindStepClock(schedule(), inputs); }

  Graph graph = ParseGraphText(R"(
graph long-sum 8 tokens
input x float32[1000000000]
forward
  l: float32[] = aten::sum(x)
  loss l
)");
  Cluster cluster = HandCluster();
  Plan plan = Resolve(PlanSpec(), graph, 1);
  PredictionInputs inputs{graph, nullptr, cluster};
};

// Launches and waits of some 20 us beside 4 ms let the GPU rest a little: 2 MHz.
constexpr double kLaunches = 2;

TEST(StepClockTest, IsTheHighestWithinTheLimit) {
  EXPECT_EQ(LongSum(150, 1).Clock(), 1000);
}

// 800 W where 200 are left; a step as long at every clock: (f / 1000)^2 = 1/4.
TEST(StepClockTest, OfKernelsThatDoNotFollowIt) {
  EXPECT_NEAR(LongSum(800, 0).Clock(), 500, kLaunches);
}

// A step that takes 1000 / f times as long: (f / 1000)^3 = 1/4.
TEST(StepClockTest, OfKernelsThatDo) {
  EXPECT_NEAR(LongSum(800, 1).Clock(), 1000 * std::cbrt(0.25), kLaunches);
}

// 100 W left of 800: (f / 1000)^2 = 1/8.
TEST(StepClockTest, OfGpusThatMayTakeLess) {
  LongSum job(800, 0);
  job.cluster.power_limit_watts = 200;
  EXPECT_NEAR(job.Clock(), 1000 * std::sqrt(0.125), kLaunches);
}

/// The clock of a sum of 4 ms at so many watts behind a rest, of which the limit averages over
/// 16 ms * (1 - exp(-rest / 16 ms)); 200 W are left.
double BehindARest(double watts, Duration step) {
  constexpr double kSum = 0.004;
  constexpr double kWindow = 0.016;
  const double rest = step.seconds() - kSum;
  const double powered = kSum + kWindow * (1 - std::exp(-rest / kWindow));
  return 1000 * std::sqrt(200 * powered / (watts * kSum));
}

// DeepSpeed's Python keeps the GPU waiting as long as the sum takes: of what is saved then most is
// there for the sum, 687 MHz in place of 500.
TEST(StepClockTest, OfARestBetweenCallsOfDeepSpeedTheEndCounts) {
  LongSum job(800, 0);
  PlanSpec spec;
  spec.options.gradient_handling = GradientHandling::kDeepSpeed;
  job.plan = Resolve(spec, job.graph, 1);
  job.cluster.host.compiled_graph = Duration::FromUs(4000);
  const Duration step = Predict(job.schedule(), job.plan, job.inputs, false).result.step_time;
  EXPECT_GT(step, Duration::FromUs(7900));
  EXPECT_NEAR(BehindARest(800, step), 687, 10);
  EXPECT_NEAR(job.Clock(), BehindARest(800, step), kLaunches);
}

// Between those calls the optimizer's kernels, which take few watts, are a rest: their energy does
// not count, and of their time the end.
TEST(StepClockTest, KernelsOfDeepSpeedsOptimizerAreARest) {
  LongSum job(3200, 0);
  const Graph with_params = ParseGraphText(R"(
graph long-sum 8 tokens
param p float32[1000000000]
input x float32[1000000000]
forward
  l: float32[] = aten::sum(x)
  loss l
)");
  PlanSpec spec;
  spec.options.gradient_handling = GradientHandling::kDeepSpeed;
  job.cluster.gpu.memory = Bytes::GiB(100);
  const Plan plan = Resolve(spec, with_params, 1);
  const PredictionInputs inputs{with_params, nullptr, job.cluster};
  const Schedule schedule = LowerFor(plan, inputs);
  const Duration step = Predict(schedule, plan, inputs, false).result.step_time;
  EXPECT_GT(step, Duration::FromUs(20000));
  EXPECT_NEAR(FindStepClock(schedule, inputs), BehindARest(3200, step), kLaunches);
}

TEST(StepClockTest, IsUnknownWithoutAModel) {
  LongSum job(800, 1);
  job.cluster.gpu.power.reset();
  EXPECT_EQ(job.Clock(), 0);
  EXPECT_EQ(CostsAtClock(job.schedule(), job.inputs).clock_mhz, 0);
}

TEST(StepClockTest, IsUnknownOfAStepThatDoesNotFit) {
  LongSum job(800, 1);
  job.cluster.gpu.memory = Bytes::GiB(2);
  EXPECT_EQ(job.Clock(), 0);
}

// A prediction runs at the schedule's clock, or at the one that it is told.
TEST(StepClockTest, APredictionTakesIt) {
  LongSum job(800, 1);
  const Result own = Predict(job.schedule(), job.plan, job.inputs, false).result;
  EXPECT_EQ(own.sm_clock_mhz, job.Clock());
  EXPECT_NEAR(own.step_time.seconds() * 1e3, 4 / std::cbrt(0.25), 0.1);
  job.inputs.clock_mhz = 500;
  const Result told = Predict(job.schedule(), job.plan, job.inputs, false).result;
  EXPECT_EQ(told.sm_clock_mhz, 500);
  EXPECT_NEAR(told.step_time.seconds() * 1e3, 8, 0.1);
}

}  // namespace
}  // namespace dcsim
