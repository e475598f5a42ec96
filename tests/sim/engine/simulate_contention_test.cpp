// How tasks that run at the same time slow each other, worked out by hand.

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

using enum StreamRole;
using enum DeviceUse;

// The copy runs at its own speed to 100; the product has done half of its work by then and does the
// other half alone.
TEST(SimulateContentionTest, SlowedWorkCatchesUpAlone) {
  StepKit kit;
  const TaskId product = kit.Kernel(kCompute, {100});
  const TaskId copy = kit.Kernel(kCopy, {100});
  kit.SetUse(product, kMatmul);
  SimulationOptions options = Contending();
  SetRate(options, kMatmul, kSideStreaming, 500);
  const RunRecord run = kit.Run(options);
  EXPECT_EQ(run.at(copy), (Interval{0, 100}));
  EXPECT_EQ(run.at(product), (Interval{0, 150}));
}

// A copy that takes a fifth of the bandwidth takes a fifth of what a whole one does: at 0.9 to 100
// the product has 10 left.
TEST(SimulateContentionTest, ACopyTakesOfOthersWhatItDemands) {
  StepKit kit;
  const TaskId product = kit.Kernel(kCompute, {100});
  const TaskId copy = kit.Kernel(kCopy, {100});
  kit.SetUse(product, kMatmul);
  kit.SetDemand(copy, 200);
  SimulationOptions options = Contending();
  SetRate(options, kMatmul, kSideStreaming, 500);
  EXPECT_EQ(kit.Run(options).at(product), (Interval{0, 110}));
}

TEST(SimulateContentionTest, WithoutMeasurementsNothingDisturbs) {
  StepKit kit;
  const TaskId product = kit.Kernel(kCompute, {100});
  kit.Kernel(kCopy, {100});
  kit.SetUse(product, kMatmul);
  SimulationOptions options = Contending();
  SetRate(options, kMatmul, kSideStreaming, 500);
  options.contention.measured = false;
  EXPECT_EQ(kit.Run(options).at(product), (Interval{0, 100}));
}

// Both slow each other: at 0.5 each, 40 of the short one's work take 80, in which the long one does
// 40 of its 100.
TEST(SimulateContentionTest, BothSlowEachOther) {
  StepKit kit;
  const TaskId longer = kit.Kernel(kCompute, {100});
  const TaskId shorter = kit.Kernel(kCopy, {40});
  SimulationOptions options = Contending();
  SetRate(options, kStreaming, kSideStreaming, 500);
  SetRate(options, kSideStreaming, kStreaming, 500);
  const RunRecord run = kit.Run(options);
  EXPECT_EQ(run.at(shorter), (Interval{0, 80}));
  EXPECT_EQ(run.at(longer), (Interval{0, 140}));
}

// Beside a copy and attention, the slower of the two rates counts: 30 of 100 done at 100.
TEST(SimulateContentionTest, OfSeveralTheSlowestCounts) {
  StepKit kit;
  const TaskId slowed = kit.Kernel(kReduce, {100});
  const TaskId attention = kit.Kernel(kCompute, {100});
  kit.Kernel(kCopy, {100});
  kit.SetUse(attention, kAttention);
  kit.SetUse(slowed, kMatmul);
  SimulationOptions options = Contending();
  SetRate(options, kMatmul, kSideStreaming, 800);
  SetRate(options, kMatmul, kAttention, 300);
  EXPECT_EQ(kit.Run(options).at(slowed), (Interval{0, 170}));
}

// The time between a collective and what it waited for, and behind another one on its stream.
TEST(SimulateContentionTest, CollectivesStartAfterAGap) {
  StepKit kit;
  const TaskId before = kit.Kernel(kCompute, {50});
  const TaskId first = kit.Collective(kGather, {20}, 0, {before});
  const TaskId second = kit.Collective(kGather, {20});
  kit.SetUse(first, kCollective);
  kit.SetUse(second, kCollective);
  SimulationOptions options = OneStep();
  options.collective_gap = Duration::FromNs(7);
  options.queued_gap = Duration::FromNs(3);
  const RunRecord run = kit.Run(options);
  EXPECT_EQ(run.at(first), (Interval{50, 77}));
  EXPECT_EQ(run.at(second), (Interval{77, 100}));
}

/// Ranks that go on together are 2 ns apart, and a tenth of the time since more, 100 at most; a
/// collective's kernel starts after 3 ns, on all ranks after 7 where that is not known.
SimulationOptions Drifting() {
  SimulationOptions options = Contending();
  options.collective_gap = Duration::FromNs(7);
  options.start_gap = Duration::FromNs(3);
  options.contention.idle_wait = Duration::FromNs(2);
  options.contention.drift = Share::FromPermille(100);
  options.contention.most_apart = Duration::FromNs(100);
  return options;
}

// Compute waits for both gathers. The first comes 50 ns after ranks went on together, 3 + 2 + 5;
// the second, behind a kernel of 30 that started as the first ended, after 3 + 2 + 3.
TEST(SimulateContentionTest, CollectiveThatComputeWaitsForMeetsRanksThatDrift) {
  StepKit kit;
  const TaskId before = kit.Kernel(kCompute, {50});
  const TaskId first = kit.Collective(kGather, {20}, 0, {before});
  const TaskId between = kit.Kernel(kCompute, {30}, {first});
  const TaskId second = kit.Collective(kGather, {20}, 0, {between});
  kit.SetUse(first, kCollective);
  kit.SetUse(second, kCollective);
  const RunRecord run = kit.Run(Drifting());
  EXPECT_EQ(run.at(first), (Interval{50, 80}));
  EXPECT_EQ(run.at(second), (Interval{110, 138}));
}

TEST(SimulateContentionTest, RanksDriftNoFurtherThanMost) {
  StepKit kit;
  const TaskId before = kit.Kernel(kCompute, {50});
  const TaskId gather = kit.Collective(kGather, {20}, 0, {before});
  kit.SetUse(gather, kCollective);
  SimulationOptions options = Drifting();
  options.contention.most_apart = Duration::FromNs(4);
  EXPECT_EQ(kit.Run(options).at(gather), (Interval{50, 77}));
}

// Where compute runs on, the gap is what it was.
TEST(SimulateContentionTest, CollectiveBesideComputeHasItsGap) {
  StepKit kit;
  kit.Kernel(kCompute, {100});
  const TaskId gather = kit.Collective(kGather, {30});
  kit.SetUse(gather, kCollective);
  EXPECT_EQ(kit.Run(Drifting()).at(gather), (Interval{0, 37}));
}

// The gather is there at 7 and finds no room beside the first product; from 100 it runs at 0.6, 30
// take 50. The first product is not disturbed; the second does 25 in those 50 and 75 alone.
TEST(SimulateContentionTest, CollectiveWaitsForTheProductThatFillsTheGpu) {
  StepKit kit;
  const TaskId product = kit.Kernel(kCompute, {100});
  const TaskId gather = kit.Collective(kGather, {30});
  const TaskId next = kit.Kernel(kCompute, {100});
  kit.SetUse(product, kMatmul);
  kit.SetUse(next, kMatmul);
  kit.SetUse(gather, kCollective);
  SimulationOptions options = Contending();
  options.collective_gap = Duration::FromNs(7);
  SetRate(options, kCollective, kMatmul, 600);
  SetRate(options, kMatmul, kCollective, 500);
  const RunRecord run = kit.Run(options);
  EXPECT_EQ(run.at(product), (Interval{0, 100}));
  EXPECT_EQ(run.at(gather), (Interval{0, 150}));
  EXPECT_EQ(run.at(next), (Interval{100, 225}));
}

// Element-wise kernels have short thread blocks: the gather starts between them.
TEST(SimulateContentionTest, CollectiveStartsBesideStreamingWork) {
  StepKit kit;
  kit.Kernel(kCompute, {100});
  const TaskId gather = kit.Collective(kGather, {30});
  kit.SetUse(gather, kCollective);
  SimulationOptions options = Contending();
  SetRate(options, kCollective, kStreaming, 600);
  EXPECT_EQ(kit.Run(options).at(gather), (Interval{0, 50}));
}

// 10 at 0.3 take 33.3 ns: a task ends with the nanosecond in which its work is done.
TEST(SimulateContentionTest, TimesAreRoundedUp) {
  StepKit kit;
  const TaskId slowed = kit.Kernel(kCopy, {10});
  kit.Kernel(kCompute, {100});
  SimulationOptions options = Contending();
  SetRate(options, kSideStreaming, kStreaming, 300);
  EXPECT_EQ(kit.Run(options).at(slowed), (Interval{0, 34}));
}

// Attention that runs in four waves lets the gather in when its first blocks have ended, after 25.
TEST(SimulateContentionTest, CollectiveWaitsForBlocksOfAKernelOfManyWaves) {
  StepKit kit;
  const TaskId attention = kit.Kernel(kCompute, {100});
  const TaskId gather = kit.Collective(kGather, {30});
  kit.SetUse(attention, kAttention);
  kit.SetRoom(attention, 25);
  kit.SetUse(gather, kCollective);
  SimulationOptions options = Contending();
  options.collective_gap = Duration::FromNs(10);
  EXPECT_EQ(kit.Run(options).at(gather), (Interval{0, 65}));
}

struct OwnShardCase {
  const char* name;
  DeviceUse use;
  std::int64_t last_wave;
  bool measured;
  std::int64_t end;
};

class OwnShardTest : public testing::TestWithParam<OwnShardCase> {};

// Peers' shards are here at 40, the own one takes 20 more and multiprocessors: of a product those
// that its last wave leaves, or its end; element-wise kernels leave some all the time. The copy
// goes before the kernel that is next.
TEST_P(OwnShardTest, IsCopiedByMultiprocessors) {
  StepKit kit;
  const TaskId compute = kit.Kernel(kCompute, {100});
  const TaskId gather = kit.Collective(kGather, {60});
  const TaskId next = kit.Kernel(kCompute, {100});
  kit.SetUse(compute, GetParam().use);
  kit.SetUse(next, GetParam().use);
  kit.SetLastWave(compute, GetParam().last_wave);
  kit.SetOwnShard(gather, 20);
  SimulationOptions options = Contending();
  options.contention.measured = GetParam().measured;
  EXPECT_EQ(kit.Run(options).at(gather), (Interval{0, GetParam().end}));
}

INSTANTIATE_TEST_SUITE_P(Beside,
                         OwnShardTest,
                         testing::Values(OwnShardCase{"AProduct", kMatmul, 0, true, 120},
                                         OwnShardCase{"ALastWave", kMatmul, 30, true, 90},
                                         OwnShardCase{"AllOfALastWave", kMatmul, 70, true, 60},
                                         OwnShardCase{"Streaming", kStreaming, 0, true, 60},
                                         OwnShardCase{"Unmeasured", kMatmul, 0, false, 60}),
                         [](const auto& row) { return row.param.name; });

// From 40 on, when peers' shards are here, the own one's copy takes from compute what a side
// stream's copy does, for 20 ns; before it copy engines take nothing.
TEST(SimulateContentionTest, TheOwnShardsCopySlowsComputeAsASideStreamsDoes) {
  StepKit kit;
  const TaskId compute = kit.Kernel(kCompute, {100});
  kit.SetOwnShard(kit.Collective(kGather, {60}), 20);
  SimulationOptions options = Contending();
  SetRate(options, kStreaming, kSideStreaming, 500);
  EXPECT_EQ(kit.Run(options).at(compute), (Interval{0, 110}));
}

// A collective's thread blocks want more than a last wave leaves.
TEST(SimulateContentionTest, ALastWaveLeavesNoRoomForACollective) {
  StepKit kit;
  const TaskId product = kit.Kernel(kCompute, {100});
  const TaskId gather = kit.Collective(kGather, {30});
  kit.SetUse(product, kMatmul);
  kit.SetLastWave(product, 50);
  kit.SetUse(gather, kCollective);
  SimulationOptions options = Contending();
  options.collective_gap = Duration::FromNs(7);
  EXPECT_EQ(kit.Run(options).at(gather), (Interval{0, 130}));
}

// A product's own speed beside a collective comes before its class's: 0.5 and 100 to do beside 40
// of the gather make 40 + 80.
TEST(SimulateContentionTest, TheOpsOwnSpeedBesideACollectiveCounts) {
  StepKit kit;
  const TaskId product = kit.Kernel(kCompute, {100});
  const TaskId gather = kit.Collective(kGather, {40});
  kit.SetUse(product, kMatmul);
  kit.SetUse(gather, kCollective);
  kit.SetBesideCollective(product, 500);
  SimulationOptions options = Contending();
  SetRate(options, kMatmul, kCollective, 900);
  EXPECT_EQ(kit.Run(options).at(product), (Interval{0, 120}));
}

// Out and back at once: at 0.8 and 0.5 the copy out ends at 100 / 0.8 = 125; of the copy back 62.5
// are done by then, and the rest goes on alone.
TEST(SimulateContentionTest, CopiesFromAndToTheHostShareItsMemory) {
  StepKit kit;
  const TaskId out = kit.Kernel(kOffload, {100});
  const TaskId back = kit.Kernel(kReload, {100});
  kit.SetHostCopy(out, 800);
  kit.SetHostCopy(back, 500);
  const RunRecord run = kit.Run(Contending());
  EXPECT_EQ(run.at(out), (Interval{0, 125}));
  EXPECT_EQ(run.at(back), (Interval{0, 163}));
}

// Out beside a kernel of 100 at 0.8, then alone; back as fast as ever.
TEST(SimulateContentionTest, ComputeSlowsCopiesToTheHost) {
  StepKit kit;
  const TaskId kernel = kit.Kernel(kCompute, {100});
  const TaskId out = kit.Kernel(kOffload, {120});
  const TaskId back = kit.Kernel(kReload, {120});
  kit.SetHostCopy(out, 1000, true);
  kit.SetHostCopy(back, 1000);
  SimulationOptions options = Contending();
  options.contention.to_host = Rate::FromPermille(800);
  const RunRecord run = kit.Run(options);
  EXPECT_EQ(run.at(kernel), (Interval{0, 100}));
  EXPECT_EQ(run.at(out), (Interval{0, 140}));
  EXPECT_EQ(run.at(back), (Interval{0, 120}));
}

// A gather by copy engines comes over the GPUs' own links.
TEST(SimulateContentionTest, CopiesBetweenGpusLeaveTheHostAlone) {
  StepKit kit;
  const TaskId out = kit.Kernel(kOffload, {100});
  const TaskId gather = kit.Kernel(kGather, {100});
  kit.SetUse(gather, kCopyEngine);
  kit.SetHostCopy(out, 500);
  const RunRecord run = kit.Run(Contending());
  EXPECT_EQ(run.at(out), (Interval{0, 100}));
  EXPECT_EQ(run.at(gather), (Interval{0, 100}));
}

// While ranks read each other's memory beside a reduction each of a kernel's two launches takes 50
// ns longer for the other rank: at half its speed until the gather ends at 60, then 70 alone.
TEST(SimulateContentionTest, CrowdedLinksHoldKernelsUp) {
  StepKit kit;
  const TaskId kernel = kit.Kernel(kCompute, {100});
  const TaskId gather = kit.Kernel(kGather, {60});
  const TaskId reduce = kit.Collective(kReduce, {500});
  kit.SetLaunches(kernel, 2);
  kit.SetUse(gather, kCopyEngine);
  kit.SetUse(reduce, kCollective);
  SimulationOptions options = Contending();
  options.contention.crowded_kernel = Duration::FromNs(50);
  EXPECT_EQ(kit.Run(options).at(kernel), (Interval{0, 130}));
  kit.SetUse(kernel, kMatmul);
  EXPECT_EQ(kit.Run(options).at(kernel), (Interval{0, 100})) << "a product";
}

// Peers' memory is read for 50 ns, which take 25 from the collective's 500. Ranks are 40 ns apart,
// so another one reads on for 40 more with a chance that falls from 1 to 0, which is looked at
// every 5 ns and so is 0.5625 in the mean: 11.25 more are lost of one other rank. Of two it is 1 -
// (1 - c)^2, 0.766 in the mean: 15.3.
TEST(SimulateContentionTest, CollectivesWaitForRanksThatStillGather) {
  const auto end = [](int ranks, bool apart) {
    StepKit kit(ranks);
    const TaskId gather = kit.Kernel(kGather, {60});
    const TaskId reduce = kit.Collective(kReduce, {500});
    kit.SetOwnShard(gather, 10);
    kit.SetUse(reduce, kCollective);
    SimulationOptions options = Contending();
    SetRate(options, kCollective, kCopyEngine, 500);
    if (apart) {
      options.contention.idle_wait = Duration();
      options.contention.drift = Share::FromPermille(1'000);
      options.contention.most_apart = Duration::FromNs(40);
    }
    return kit.Run(options).at(reduce);
  };
  EXPECT_EQ(end(2, false), (Interval{0, 525}));
  EXPECT_EQ(end(2, true), (Interval{0, 537}));
  EXPECT_EQ(end(3, true), (Interval{0, 540}));
}

// The GPU reads others' memory for half of the 40 ns before the kernel starts, by which another
// rank is apart: the kernel, which takes 50 ns longer while that reads, goes at 100 / 125 for 5 ns,
// then at 100 / 118.75, 100 / 112.5 and 100 / 106.25 as the chance falls: 2.6 ns are lost.
TEST(SimulateContentionTest, CrowdedLinksHoldKernelsUpByTheChanceThatOthersGather) {
  StepKit kit;
  const TaskId gather = kit.Kernel(kGather, {20});
  const TaskId reduce = kit.Collective(kReduce, {500});
  const TaskId copy = kit.Kernel(kCopy, {40});
  const TaskId kernel = kit.Kernel(kCompute, {100}, {copy});
  kit.SetUse(gather, kCopyEngine);
  kit.SetUse(reduce, kCollective);
  SimulationOptions options = Contending();
  options.contention.crowded_kernel = Duration::FromNs(50);
  options.contention.idle_wait = Duration();
  options.contention.drift = Share::FromPermille(1'000);
  options.contention.most_apart = Duration::FromNs(40);
  EXPECT_EQ(kit.Run(options).at(kernel), (Interval{40, 143}));
}

// Collectives and gathers by copy engines share the GPUs' links, copies of the host do not.
TEST(SimulateContentionTest, OnlyCopiesBetweenGpusDisturbCollectives) {
  StepKit kit;
  const TaskId reduce = kit.Collective(kReduce, {100});
  const TaskId copy = kit.Kernel(kOffload, {100});
  kit.SetUse(reduce, kCollective);
  kit.SetUse(copy, kCopyEngine);
  SimulationOptions options = Contending();
  SetRate(options, kCollective, kCopyEngine, 500);
  SetRate(options, kCopyEngine, kCollective, 800);
  EXPECT_EQ(kit.Run(options).at(reduce), (Interval{0, 163}));
  EXPECT_EQ(kit.Run(options).at(copy), (Interval{0, 125}));
  kit.SetHostCopy(copy, 1'000);
  EXPECT_EQ(kit.Run(options).at(reduce), (Interval{0, 100}));
  EXPECT_EQ(kit.Run(options).at(copy), (Interval{0, 100}));
}

// One gather ends beside a product that started on the other multiprocessors; the next one takes
// the place of the first at once, instead of behind the product.
TEST(SimulateContentionTest, CollectiveTakesThePlaceOfTheOneBefore) {
  StepKit kit;
  const TaskId first = kit.Collective(kGather, {50});
  const TaskId second = kit.Collective(kGather, {50});
  const TaskId copy = kit.Kernel(kCopy, {20});
  const TaskId product = kit.Kernel(kCompute, {500}, {copy});
  kit.SetUse(product, kMatmul);
  kit.SetUse(first, kCollective);
  kit.SetUse(second, kCollective);
  SimulationOptions options = Contending();
  options.queued_gap = Duration::FromNs(3);
  EXPECT_EQ(kit.Run(options).at(first), (Interval{0, 50}));
  EXPECT_EQ(kit.Run(options).at(second), (Interval{50, 103}));
}

/// A gather until 100, a reduction behind it on its communicator, 30, and a product of 50 that
/// waits for the gather, which fills the GPU.
struct ReductionBesideProduct {
  StepKit kit;
  TaskId gather = kit.Collective(kGather, {100});
  TaskId reduction = kit.Collective(kReduce, {30});
  TaskId product = kit.Kernel(kCompute, {50}, {gather});

  ReductionBesideProduct() {
    kit.SetUse(gather, kCollective);
    kit.SetUse(reduction, kCollective);
    kit.SetUse(product, kMatmul);
    kit.SetRoom(product, 50);
  }
  RunRecord Run() {
    SimulationOptions options = Contending();
    options.collective_gap = Duration::FromNs(4);
    options.start_gap = Duration::FromNs(4);
    SetRate(options, kMatmul, kCollective, 500);
    return kit.Run(options);
  }
};

// Both go on at 104, the product alone until the reduction's kernel comes at 108, which finds no
// room before the product has ended.
TEST(SimulateContentionTest, WhatWaitedForACollectiveComesBeforeTheNextOfItsCommunicator) {
  ReductionBesideProduct step;
  const RunRecord run = step.Run();
  EXPECT_EQ(run.at(step.product), (Interval{104, 154}));
  EXPECT_EQ(run.at(step.reduction), (Interval{104, 184}));
}

// A product with a kernel that prepares it is there later than the reduction, which it does not
// keep waiting. At 0.5 it does 15 of its 46 until that ends; thread blocks with tiles of their own
// begin then.
TEST(SimulateContentionTest, TheNextCollectiveOfACommunicatorComesBeforeAnOpOfSeveralKernels) {
  for (const bool own_tiles : {false, true}) {
    ReductionBesideProduct step;
    step.kit.SetLaunches(step.product, 2);
    if (own_tiles) {
      step.kit.SetOwnTiles(step.product, 50, 50);
    }
    const RunRecord run = step.Run();
    EXPECT_EQ(run.at(step.reduction), (Interval{104, 138}));
    EXPECT_EQ(run.at(step.product), (Interval{104, own_tiles ? 188 : 169}));
  }
}

/// What memory traffic does is in the tasks' costs; collectives start at once.
BesideMemory MemoryDecides() {
  return {Bytes::MiB(1), {{2, Duration(), {{Bytes::MiB(1), Longer()}}}}, Longer()};
}

// A copy of another side stream that moves bytes half of its time holds a collective up as a kernel
// of that load does, whatever the table says of the classes.
TEST(SimulateContentionTest, CopiesHoldCollectivesUpAsWhatTheyMove) {
  StepKit kit;
  const TaskId gather = kit.Collective(kGather, {100});
  const TaskId copy = kit.Kernel(kCopy, {80});
  kit.SetUse(gather, kCollective);
  kit.SetDemand(copy, 500);
  kit.SetBesideMemory(gather, 1200);
  SimulationOptions options = Contending();
  options.contention.beside_memory = MemoryDecides();
  SetRate(options, kCollective, kSideStreaming, 500);
  EXPECT_EQ(kit.Run(options).at(gather), (Interval{0, 130}));
}

// Beside a kernel that moves half of what holds collectives up most, one that takes 1.2 times its
// time longer beside the whole takes 1.6 times its time: 50 of its 100 are done when the kernel
// ends at 80, and the other 50 go on alone. What else runs on the compute stream does nothing.
TEST(SimulateContentionTest, KernelsThatMoveMemoryHoldCollectivesUp) {
  for (const DeviceUse use : {kStreaming, kMatmul}) {
    StepKit kit;
    const TaskId gather = kit.Collective(kGather, {100});
    const TaskId kernel = kit.Kernel(kCompute, {80});
    kit.SetUse(gather, kCollective);
    kit.SetUse(kernel, use);
    kit.SetMemoryLoad(kernel, 500);
    kit.SetBesideMemory(gather, 1200);
    SimulationOptions options = Contending();
    options.contention.beside_memory = MemoryDecides();
    EXPECT_EQ(kit.Run(options).at(gather), (Interval{0, use == kStreaming ? 130 : 100}));
    EXPECT_EQ(kit.Run(options).at(kernel), (Interval{0, 80}));
  }
}

// The same of what a gather by copy engines reads from others; the own shard's copy has the speed
// of its class, here all of it: of 90 that are read 50 are done at 80.
TEST(SimulateContentionTest, MemoryTrafficHoldsCopyEnginesUp) {
  StepKit kit;
  const TaskId gather = kit.Kernel(kGather, {100});
  const TaskId kernel = kit.Kernel(kCompute, {80});
  kit.SetUse(gather, kCopyEngine);
  kit.SetOwnShard(gather, 10);
  kit.SetUse(kernel, kStreaming);
  kit.SetMemoryLoad(kernel, 500);
  kit.SetBesideMemory(gather, 1200);
  SimulationOptions options = Contending();
  EXPECT_EQ(kit.Run(options).at(gather), (Interval{0, 130}));
  kit.SetHostCopy(gather, 1000);
  EXPECT_EQ(kit.Run(options).at(gather), (Interval{0, 100})) << "over another bus";
}

// A collective of a quarter of NCCL's thread blocks takes a quarter of what one of all takes.
TEST(SimulateContentionTest, ASmallCollectiveTakesItsShareOfTheThreadBlocks) {
  StepKit kit;
  const TaskId gather = kit.Collective(kGather, {1000});
  const TaskId copy = kit.Kernel(kCopy, {20});
  const TaskId product = kit.Kernel(kCompute, {100}, {copy});
  kit.SetUse(product, kMatmul);
  kit.SetUse(gather, kCollective);
  kit.SetDemand(gather, 250);
  SimulationOptions options = Contending();
  SetRate(options, kMatmul, kCollective, 500);
  EXPECT_EQ(kit.Run(options).at(product), (Interval{20, 135}));  // 100 / 0.875 = 114.3
}

// A copy that an event lets start begins 6 later, one behind it on its stream at once.
TEST(SimulateContentionTest, AnEventTakesTimeToStartAKernelThatSaysSo) {
  StepKit kit;
  const TaskId kernel = kit.Kernel(kCompute, {50});
  const TaskId first = kit.Kernel(kCopy, {30}, {kernel});
  const TaskId second = kit.Kernel(kCopy, {30});
  kit.SetStart(first, 6);
  kit.SetStart(second, 6);
  const RunRecord run = kit.Run(Contending());
  EXPECT_EQ(run.at(first), (Interval{50, 86}));
  EXPECT_EQ(run.at(second), (Interval{86, 116}));
}

/// A side stream's copy of 100, of so many kernels, and a collective of another one or a kernel of
/// compute, of 10, that the host launches at 30: when that runs.
Interval BehindCopy(DeviceUse use, std::int32_t launches, std::int32_t demand) {
  StepKit kit;
  const TaskId copy = kit.Kernel(kCopy, {100});
  kit.SetUse(copy, kSideStreaming);
  kit.SetLaunches(copy, launches);
  kit.SetDemand(copy, demand);
  const TaskId task =
      use == kCollective ? kit.Collective(kReduce, {10, 30}) : kit.Kernel(kCompute, {10, 30});
  kit.SetUse(task, use);
  return kit.Run(Contending()).at(task);
}

// One kernel has all multiprocessors until it ends; of four, each of 25, the second one does until
// 50. One that is mostly launched leaves room.
TEST(SimulateContentionTest, CollectivesAndComputeWaitForTheCopyThatRuns) {
  for (const DeviceUse use : {kCollective, kStreaming, kMatmul, kAttention}) {
    EXPECT_EQ(BehindCopy(use, 1, 1000), (Interval{30, 110}));
    EXPECT_EQ(BehindCopy(use, 4, 1000), (Interval{30, 60}));
    EXPECT_EQ(BehindCopy(use, 4, 400), (Interval{30, 40}));
  }
}

// A product that began before the copy keeps it waiting: [0, 50) and [50, 90).
TEST(SimulateContentionTest, ACopyWaitsForTheProductThatRuns) {
  StepKit kit;
  kit.SetUse(kit.Kernel(kCompute, {50}), kMatmul);
  const TaskId copy = kit.Kernel(kCopy, {40, 10});
  kit.SetUse(copy, kSideStreaming);
  const RunRecord run = kit.Run(Contending());
  EXPECT_EQ(run.at(TaskId(0)), (Interval{0, 50}));
  EXPECT_EQ(run.at(copy), (Interval{10, 90}));
}

// The copy gets a quarter of its speed beside the product, so it takes a quarter of the half that
// it would take of the collective's: at 7/8 of its speed 70 take 80. Without a product 20 are done
// when the copy ends at 40, and 50 are left.
TEST(SimulateContentionTest, ACopyThatIsSlowedDisturbsCollectivesLess) {
  for (const bool slowed : {true, false}) {
    StepKit kit;
    kit.SetUse(kit.Kernel(kCopy, {40}), kSideStreaming);
    const TaskId collective = kit.Collective(kReduce, {70});
    kit.SetUse(collective, kCollective);
    if (slowed) {
      kit.SetUse(kit.Kernel(kCompute, {200}), kMatmul);
    }
    SimulationOptions options = Contending();
    SetRate(options, kSideStreaming, kMatmul, 250);
    SetRate(options, kCollective, kSideStreaming, 500);
    EXPECT_EQ(kit.Run(options).at(collective), (Interval{0, slowed ? 80 : 90}));
  }
}

}  // namespace
}  // namespace dcsim
