#include "model/cost/power.h"

#include <memory>

#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "tests/model/machine/cluster_document.h"

namespace dcsim {
namespace {

/// 300 W at most, 100 of them idle; 400 more of products at the highest clock, 1000 MHz, and 100 of
/// collectives. Products follow the clock, which was 800 MHz when they were measured.
PowerModel RoundPower() {
  PowerModel power;
  power.limit_watts = 300;
  power.idle_watts = 100;
  power.highest_mhz = 1000;
  power.profiled_mhz = 800;
  power.exponent = 2;
  power.watts[static_cast<std::size_t>(DeviceUse::kMatmul)] = 400;
  power.watts[static_cast<std::size_t>(DeviceUse::kCollective)] = 100;
  power.slows[static_cast<std::size_t>(DeviceUse::kMatmul)] = 1;
  return power;
}

/// Op 0: 2 * 1000 * 2000 * 5000 FLOP, 40 us at 500 TFLOP/s.
Graph OneProduct() {
  return ParseGraphText(R"(
graph g 1 tokens
input a bfloat16[1000,2000]
input b bfloat16[2000,5000]
forward
y: bfloat16[1000,5000] = aten::mm(a, b)
l: bfloat16[] = my::loss(y)
loss l
)");
}

/// A product, and an all-gather of 1 MB, which takes 20 us.
Schedule ProductAndGather() {
  ScheduleBuilder builder(4, ScheduleOptions());
  Collective collective;
  collective.ranks = 4;
  collective.calls = {{ParamId(0), 500'000, 0}};
  builder.AddCollective(collective);
  TaskDraft draft;
  draft.work.kind = Work::Kind::kOp;
  builder.Add(draft);
  draft.work = Work();
  draft.work.kind = Work::Kind::kCollective;
  builder.Add(draft);
  return std::move(builder).Build();
}

/// TestCluster with RoundPower, and the job on it.
struct PoweredStep {
  PoweredStep() {
    cluster.gpu.power = RoundPower();
    cluster.gpu.matmul.front().flops_per_second = 5e14;
    cluster.gpu.matmul_efficiency = 1;
  }

  std::vector<WorkCost> CostsAt(double clock_mhz) const {
    return EstimateWorks(schedule, graph, nullptr, cluster, clock_mhz);
  }
  double Energy(const Profile* profile = nullptr) const {
    return StepEnergy(schedule, graph, profile, cluster, CostsAt(0));
  }

  Graph graph = OneProduct();
  Schedule schedule = ProductAndGather();
  Cluster cluster = TestCluster();
};

/// A profile in which the product takes 40 us of a step of 50 us.
Profile ProfileAt(double clock_mhz) {
  Profile profile;
  profile.step_time = Duration::FromUs(50);
  profile.sm_clock_mhz = clock_mhz;
  OpProfile product;
  product.op = OpId(0);
  product.device_time = Duration::FromUs(40);
  profile.ops = {product};
  return profile;
}

// 2 J in 10 ms are the 200 W that the limit leaves; less than that leaves the clock alone.
TEST(PowerTest, WithinItsLimitAGpuRunsAtItsHighestClock) {
  EXPECT_EQ(ClockWithinLimit(PoweredStep().cluster, 2, Duration::FromMs(10)), 1000);
  EXPECT_EQ(ClockWithinLimit(PoweredStep().cluster, 1, Duration::FromMs(10)), 1000);
}

// 800 W where 200 are left: a quarter of the energy, which half of the clock takes.
TEST(PowerTest, TheClockGoesWithTheRootOfWhatIsLeft) {
  EXPECT_DOUBLE_EQ(ClockWithinLimit(PoweredStep().cluster, 8, Duration::FromMs(10)), 500);
}

// 800 W where 150 W leave 50 beside idle: a sixteenth. What profiles say of energies stays.
TEST(PowerTest, OperatorsMayAllowLess) {
  PoweredStep step;
  step.cluster.power_limit_watts = 150;
  EXPECT_EQ(PowerLimit(step.cluster), 150);
  EXPECT_DOUBLE_EQ(ClockWithinLimit(step.cluster, 8, Duration::FromMs(10)), 250);
  const Profile profile = ProfileAt(500);
  EXPECT_EQ(step.Energy(&profile), PoweredStep().Energy(&profile));
}

// 40 us at 400 W and 20 us at 100 W.
TEST(PowerTest, TheEnergyOfAStepIsThatOfItsTasks) {
  EXPECT_NEAR(PoweredStep().Energy(), 40e-6 * 400 + 20e-6 * 100, 1e-12);
}

// The same 40 us are half of a peak of 1000 TFLOP/s, two thirds of the 0.75 that large products
// reach: 100 W of streaming and two thirds of the 300 more.
TEST(PowerTest, ProductsThatReachLessTakeLess) {
  PoweredStep step;
  step.cluster.gpu.matmul.front().flops_per_second = 1e15;
  step.cluster.gpu.matmul_efficiency = 0.5;
  step.cluster.gpu.power->watts[static_cast<std::size_t>(DeviceUse::kStreaming)] = 100;
  EXPECT_NEAR(step.Energy() - 20e-6 * 100, 40e-6 * 300, 2e-6 * 100);
}

TEST(PowerTest, AHungryGpuNeedsMore) {
  PoweredStep step;
  step.cluster.straggler_power = 1.5;
  EXPECT_NEAR(step.Energy(), 1.5 * PoweredStep().Energy(), 1e-12);
}

// 200 W over 50 us at half of the clock: 10 mJ, which are 40 at the highest, not the 16 of 400 W.
TEST(PowerTest, AProfileBelowTheHighestClockTellsItsEnergy) {
  const Profile profile = ProfileAt(500);
  const PoweredStep step;
  EXPECT_NEAR(step.Energy(&profile), step.Energy() * 40 / 16, 1e-12);
}

// 10 mJ at the highest clock: the limit was not reached with 16, so it was 10 or less.
TEST(PowerTest, AProfileAtTheHighestClockBoundsItsEnergy) {
  const Profile profile = ProfileAt(1000);
  const PoweredStep step;
  EXPECT_NEAR(step.Energy(&profile), step.Energy() * 10 / 16, 1e-12);
}

// Where a form has one product of a profile, what all ran together stands: not the 50 us as if the
// product alone had filled them.
TEST(PowerTest, ABorrowedProfileSaysWhatTheWholeOneDoes) {
  const Profile whole = ProfileAt(500);
  Profile borrowed = whole;
  borrowed.step_time = Duration::FromUs(10);
  borrowed.ops.front().device_time = Duration::FromUs(5);
  borrowed.borrowed_from =
      std::make_shared<const ProfiledGraph>(ProfiledGraph{OneProduct(), whole});
  const PoweredStep step;
  EXPECT_NEAR(step.Energy(&borrowed), step.Energy(&whole), 1e-12);
}

// The same step with pauses would allow more than 400 W: what the GPU file says stands.
TEST(PowerTest, AnIdleProfileSaysNothing) {
  Profile profile = ProfileAt(1000);
  profile.step_time = Duration::FromMs(1);
  const PoweredStep step;
  EXPECT_NEAR(step.Energy(&profile), step.Energy(), 1e-12);
}

TEST(PowerTest, AProfileWithoutAClockHasTheGpuFiles) {
  const Profile silent = ProfileAt(0);
  const Profile says = ProfileAt(900);
  EXPECT_EQ(ProfiledClock(nullptr, RoundPower()), 800);
  EXPECT_EQ(ProfiledClock(&silent, RoundPower()), 800);
  EXPECT_EQ(ProfiledClock(&says, RoundPower()), 900);
  EXPECT_EQ(PoweredStep().Energy(&silent), PoweredStep().Energy());
}

// Measured at 800 MHz: at 400 twice the 40 us, at 1000 32 us. The gather takes its 20 us.
TEST(PowerTest, KernelsFollowTheClockAndCollectivesDoNot) {
  const PoweredStep step;
  EXPECT_EQ(step.CostsAt(0)[0].device.ns(), 40'000);
  EXPECT_EQ(step.CostsAt(800)[0].device.ns(), 40'000);
  EXPECT_EQ(step.CostsAt(400)[0].device.ns(), 80'000);
  EXPECT_EQ(step.CostsAt(1000)[0].device.ns(), 32'000);
  EXPECT_EQ(step.CostsAt(400)[1].device.ns(), 20'000);
}

TEST(PowerTest, WithoutAModelTheClockChangesNothing) {
  PoweredStep step;
  step.cluster.gpu.power.reset();
  EXPECT_EQ(step.CostsAt(400)[0].device.ns(), 40'000);
}

}  // namespace
}  // namespace dcsim
