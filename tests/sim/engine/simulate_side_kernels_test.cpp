// Copies and divisions of side streams beside compute: one of a single kernel, and tasks of many
// short ones, worked out by hand.

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

using enum StreamRole;
using enum DeviceUse;

/// Each of many kernels comes 5 ns later beside element-wise work, and they run for 20 ns between
/// products, besides their last wave, where they need 40 multiprocessors for all of their speed;
/// one that runs all the time stops element-wise kernels and leaves products 0.95 of their speed.
SimulationOptions ManyKernels() {
  SimulationOptions options = Contending();
  options.contention.side_kernels = SideKernels{Duration::FromNs(5), Duration::FromNs(20)};
  options.contention.copy_multiprocessors = 40;
  SetRate(options, kStreaming, kSideStreaming, 0);
  SetRate(options, kMatmul, kSideStreaming, 950);
  SetRate(options, kSideStreaming, kMatmul, 300);
  return options;
}

/// Ten kernels of 15 ns on a side stream beside one of compute, which takes 100 ns alone. The ten
/// move bytes for half of their time.
struct TenKernels {
  StepKit kit;
  TaskId compute = kit.Kernel(kCompute, {100});
  TaskId side = kit.Kernel(kCopy, {150});

  TenKernels() {
    kit.SetLaunches(side, 10);
    kit.SetDemand(side, 500);
  }
};

// 15 of 20 ns: at 0.75 of their speed they take half of that from the kernel, which does 0.625. At
// 160 it ends, 30 of the 150 are left.
TEST(SimulateSideKernelsTest, EachComesLaterBesideElementWiseWork) {
  TenKernels step;
  const RunRecord run = step.kit.Run(ManyKernels());
  EXPECT_EQ(run.at(step.compute), (Interval{0, 160}));
  EXPECT_EQ(run.at(step.side), (Interval{0, 190}));
}

// A product lasts 100, at whose end 20 ns of them run: 0.2 of their speed, whatever a single copy
// has. It takes 106 at 0.95, in which they do 21 of 150.
TEST(SimulateSideKernelsTest, TheyRunAtAProductsEnd) {
  TenKernels step;
  step.kit.SetUse(step.compute, kMatmul);
  const RunRecord run = step.kit.Run(ManyKernels());
  EXPECT_EQ(run.at(step.compute), (Interval{0, 106}));
  EXPECT_EQ(run.at(step.side), (Interval{0, 235}));
}

struct LastWaveCase {
  const char* name;
  std::int64_t last_wave;
  std::int32_t free;
  std::int64_t end;
};

class LastWaveTest : public testing::TestWithParam<LastWaveCase> {};

// A last wave of 40 of the product's 100 ns leaves them 10 of the 40 multiprocessors that they need
// for the half of their time in which they move bytes: 1 / (0.5 + 0.5 * 4) = 0.4 of their speed, 16
// ns, besides 20 between products. In 106 ns they do 0.36 of that, 38 of 150, the rest in 112. With
// all they need they do 0.6, 63.6 of 150; on 2, where all tiles are one wave, 0.095 of 100 ns
// besides the 20, 0.29.
TEST_P(LastWaveTest, LeavesThemMultiprocessors) {
  TenKernels step;
  step.kit.SetUse(step.compute, kMatmul);
  step.kit.SetLastWave(step.compute, GetParam().last_wave, GetParam().free);
  const RunRecord run = step.kit.Run(ManyKernels());
  EXPECT_EQ(run.at(step.compute), (Interval{0, 106}));
  EXPECT_EQ(run.at(step.side), (Interval{0, GetParam().end}));
}

INSTANTIATE_TEST_SUITE_P(OfAProduct,
                         LastWaveTest,
                         testing::Values(LastWaveCase{"SomeAreFree", 40, 10, 218},
                                         LastWaveCase{"EnoughAreFree", 40, 100, 193},
                                         LastWaveCase{"OneWave", 100, 2, 226},
                                         LastWaveCase{"NothingIsKnown", 0, 0, 235}),
                         [](const auto& row) { return row.param.name; });

// Of three kernels of 50 ns one runs at a product's end, the last 30 of it behind the product: 50
// of 130 ns, in which the product does its 100, 49 of the 150.
TEST(SimulateSideKernelsTest, LongOnesHoldTheNextProductUp) {
  TenKernels step;
  step.kit.SetUse(step.compute, kMatmul);
  step.kit.SetLaunches(step.side, 3);
  const RunRecord run = step.kit.Run(ManyKernels());
  EXPECT_EQ(run.at(step.compute), (Interval{0, 131}));
  EXPECT_EQ(run.at(step.side), (Interval{0, 231}));
}

// Its thread blocks of 30 ns leave them 0.3 of their speed.
TEST(SimulateSideKernelsTest, AttentionsLastThreadBlocksLeaveThemRoom) {
  TenKernels step;
  step.kit.SetUse(step.compute, kAttention);
  step.kit.SetRoom(step.compute, 30);
  EXPECT_EQ(step.kit.Run(ManyKernels()).at(step.side), (Interval{0, 220}));
}

// Attention loses nothing: in 100 ns they do 20 of 150.
TEST(SimulateSideKernelsTest, AttentionLosesNothingToThem) {
  TenKernels step;
  step.kit.SetUse(step.compute, kAttention);
  SimulationOptions options = ManyKernels();
  SetRate(options, kAttention, kSideStreaming, 500);
  const RunRecord run = step.kit.Run(options);
  EXPECT_EQ(run.at(step.compute), (Interval{0, 100}));
  EXPECT_EQ(run.at(step.side), (Interval{0, 230}));
}

// Compute's kernels of 5 ns come between two of them: the one that starts at 20 waits for the
// second, which ends at 30, and both go on at full speed.
TEST(SimulateSideKernelsTest, ShortKernelsComeBetweenTwo) {
  StepKit kit;
  const TaskId other = kit.Kernel(kGather, {20});
  const TaskId compute = kit.Kernel(kCompute, {10}, {other});
  const TaskId side = kit.Kernel(kCopy, {150});
  kit.SetLaunches(compute, 2);
  kit.SetLaunches(side, 10);
  kit.SetDemand(side, 900);
  const RunRecord run = kit.Run(ManyKernels());
  EXPECT_EQ(run.at(compute), (Interval{20, 40}));
  EXPECT_EQ(run.at(side), (Interval{0, 150}));
}

// A product that comes at 20 waits for the second kernel, too, but not for the eight behind it, of
// which none keeps multiprocessors from its own tiles.
TEST(SimulateSideKernelsTest, AProductWaitsForOneOfThem) {
  StepKit kit;
  const TaskId other = kit.Kernel(kGather, {20});
  const TaskId product = kit.Kernel(kCompute, {100}, {other});
  const TaskId side = kit.Kernel(kCopy, {150});
  kit.SetUse(product, kMatmul);
  kit.SetOwnTiles(product, 100, 100);
  kit.SetLaunches(side, 10);
  SimulationOptions options = ManyKernels();
  SetRate(options, kMatmul, kSideStreaming, 1000);
  EXPECT_EQ(kit.Run(options).at(product), (Interval{20, 130}));
}

TEST(SimulateSideKernelsTest, OneKernelIsNoTaskOfMany) {
  TenKernels step;
  step.kit.SetLaunches(step.side, 1);
  const RunRecord run = step.kit.Run(ManyKernels());
  EXPECT_EQ(run.at(step.side), (Interval{0, 150}));
}

/// A copy that an event lets start as compute's kernel of 100 ns starts, 4 ns later.
struct CopyBehindKernel {
  StepKit kit;
  TaskId before = kit.Kernel(kCompute, {10});
  TaskId compute = kit.Kernel(kCompute, {100});
  TaskId copy = kit.Kernel(kCopy, {20}, {before});

  explicit CopyBehindKernel(DeviceUse use) {
    kit.SetUse(compute, use);
    kit.SetRoom(compute, 100);
    kit.SetLastWave(compute, 30);
    kit.SetStart(copy, 4);
  }
};

// The product is there first and leaves multiprocessors in its last 30 ns, from 80 on.
TEST(SimulateSideKernelsTest, ACopyWaitsForAProductsLastWave) {
  CopyBehindKernel step(kMatmul);
  const RunRecord run = step.kit.Run(Contending());
  EXPECT_EQ(run.at(step.compute), (Interval{10, 110}));
  EXPECT_EQ(run.at(step.copy), (Interval{10, 100}));
}

// These are 10 of the 40 that it needs: 7.5 of its 20 ns beside the product, from 80 to 110.
TEST(SimulateSideKernelsTest, ALastWaveLeavesACopyFewMultiprocessors) {
  CopyBehindKernel step(kMatmul);
  step.kit.SetLastWave(step.compute, 30, 10);
  SimulationOptions options = Contending();
  options.contention.copy_multiprocessors = 40;
  EXPECT_EQ(step.kit.Run(options).at(step.copy), (Interval{10, 123}));
}

TEST(SimulateSideKernelsTest, AttentionLeavesACopyRoom) {
  CopyBehindKernel step(kAttention);
  EXPECT_EQ(step.kit.Run(Contending()).at(step.copy), (Interval{10, 34}));
}

// One behind another copy needs no event, and compute's own kernels follow each other at once.
TEST(SimulateSideKernelsTest, OnlyAnEventMakesThemLater) {
  StepKit kit;
  const TaskId first = kit.Kernel(kCopy, {20});
  const TaskId second = kit.Kernel(kCopy, {20});
  const TaskId later = kit.Kernel(kCompute, {10}, {second});
  for (const TaskId task : {first, second, later}) {
    kit.SetStart(task, 4);
  }
  const RunRecord run = kit.Run(Contending());
  EXPECT_EQ(run.at(first), (Interval{0, 24}));
  EXPECT_EQ(run.at(second), (Interval{24, 44}));
  EXPECT_EQ(run.at(later), (Interval{44, 54}));
}

}  // namespace
}  // namespace dcsim
