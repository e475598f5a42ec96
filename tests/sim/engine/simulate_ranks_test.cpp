// Two ranks that do the same, where on each of them a collective or a kernel may be first: worked
// out by hand.

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

using enum StreamRole;
using enum DeviceUse;

std::int64_t Length(const Interval& interval) {
  return interval.end - interval.start;
}

/// A kernel of 50, a gather of 30 that waits for it, a product of 100 behind it, and a gather
/// behind that, for which compute waits, so that ranks go on together; again and again.
struct Race {
  explicit Race(int count) {
    for (int i = 0; i < count; ++i) {
      const TaskId kernel = kit.Kernel(kCompute, {50});
      gathers.push_back(kit.Collective(kGather, {30}, 0, {kernel}));
      kit.SetUse(gathers.back(), kCollective);
      products.push_back(kit.Kernel(kCompute, {100}));
      kit.SetUse(products.back(), kMatmul);
      const TaskId last = kit.Collective(kGather, {10}, 0, {products.back()});
      kit.SetUse(last, kCollective);
      kit.Wait(kCompute, {last});
    }
    options.collective_gap = Duration::FromNs(3);
    options.start_gap = Duration::FromNs(3);
    options.contention.first_delay = Duration::FromNs(5);
    SetRate(options, kMatmul, kCollective, 500);
  }

  RunRecord Run(int first_permille) {
    options.contention.comes_first = Share::FromPermille(first_permille);
    return kit.Run(options);
  }

  StepKit kit;
  std::vector<TaskId> gathers;
  std::vector<TaskId> products;
  SimulationOptions options = Contending();
};

// The gather starts at 53, the product at 55 and at half its speed until 83: it has done 14 then.
TEST(SimulateRanksTest, ACollectiveThatComesFirstHoldsTheKernelBack) {
  Race race(1);
  const RunRecord run = race.Run(1000);
  EXPECT_EQ(run.at(race.gathers[0]), (Interval{50, 83}));
  EXPECT_EQ(run.at(race.products[0]), (Interval{50, 169}));
}

// Nothing tells ranks apart: one stands for both. The gather finds room at 150.
TEST(SimulateRanksTest, AKernelThatIsFirstKeepsItsMultiprocessors) {
  Race race(1);
  const RunRecord run = race.Run(0);
  EXPECT_EQ(run.at(race.gathers[0]), (Interval{50, 180}));
  EXPECT_EQ(run.at(race.products[0]), (Interval{50, 150}));
}

// Of 400 units, by who is first here and there: (gather, gather) as above. (gather, product): it
// stands from 53 to 180, since the other one finds room at 150 behind the start of its unit, and
// the product does 62 of its 100 beside it. (product, either): the product is undisturbed.
TEST(SimulateRanksTest, ACollectiveWaitsForTheRankWhereTheKernelWasFirst) {
  constexpr int kUnits = 400;
  Race race(kUnits);
  const RunRecord run = race.Run(500);
  int both = 0;
  int here = 0;
  for (int i = 0; i < kUnits; ++i) {
    const auto unit = static_cast<std::size_t>(i);
    const std::int64_t gather = Length(run.at(race.gathers[unit]));
    const std::int64_t product = Length(run.at(race.products[unit]));
    if (product == 100) {
      EXPECT_EQ(gather, 130);
    } else if (gather == 33) {
      ++both;
      EXPECT_EQ(product, 119);
    } else {
      ++here;
      EXPECT_EQ(gather, 130);
      EXPECT_EQ(product, 168);
    }
  }
  // A quarter each; 60 are four standard deviations fewer than that.
  EXPECT_GT(both, 60);
  EXPECT_LT(both, 140);
  EXPECT_GT(here, 60);
  EXPECT_LT(here, 140);
}

TEST(SimulateRanksTest, SoManyAreFirst) {
  constexpr int kUnits = 1000;
  Race race(kUnits);
  const RunRecord run = race.Run(410);
  const auto held = std::count_if(race.products.begin(), race.products.end(),
                                  [&](TaskId product) { return Length(run.at(product)) > 100; });
  EXPECT_NEAR(static_cast<double>(held), 410, 62);  // four standard deviations
}

// The gather of the next step is asked again and answers the same.
TEST(SimulateRanksTest, StepsAreAlike) {
  Race race(20);
  race.options.measured_steps = 3;
  race.options.contention.comes_first = Share::FromPermille(500);
  const Simulation result = Simulate(race.kit.schedule(), race.kit.costs(), race.options, {});
  const auto times = result.measured_step_times(race.options.warmup_steps);
  ASSERT_EQ(times.size(), 3U);
  EXPECT_EQ(times[1], times[2]);
}

/// What a rank does before a collective of 30 behind it on its stream.
RunRecord StoreAndReduce(const std::vector<std::int64_t>& stores) {
  StepKit kit(static_cast<int>(stores.size()));
  kit.KernelByRank(kReduce, stores);
  const TaskId reduce = kit.Collective(kReduce, {30});
  kit.SetUse(reduce, kCollective);
  SimulationOptions options = Contending();
  options.contention.comes_first = Share::FromPermille(1);
  return kit.Run(options);
}

// The first rank stores for 10 ns, the second for 40; then each of four another time.
TEST(SimulateRanksTest, ACollectiveWaitsForTheRankThatStoresLongest) {
  const TaskId reduce(1);
  EXPECT_EQ(StoreAndReduce({10, 40}).at(reduce), (Interval{10, 70}));
  EXPECT_EQ(StoreAndReduce({10, 0, 25, 5}).at(reduce), (Interval{10, 55}));
  EXPECT_EQ(StoreAndReduce({40, 0, 25, 5}).at(reduce), (Interval{40, 70}));
}

// Ranks that all do the same are two, whatever their number.
TEST(SimulateRanksTest, AllRanksThatDifferAreSimulated) {
  EXPECT_EQ(StoreAndReduce({10, 10, 10, 10}).result.tasks_executed, 4U);
  EXPECT_EQ(StoreAndReduce({10, 0, 25, 5}).result.tasks_executed, 8U);
}

TEST(SimulateRanksTest, BothRunOutOfMemory) {
  Race race(1);
  Buffer resident;
  resident.bytes = Bytes::MiB(30);
  resident.resident = true;
  race.kit.AddBuffer(resident);
  race.options.allocator.capacity = Bytes::MiB(25);
  EXPECT_EQ(race.Run(500).result.outcome, Outcome::kOutOfMemory);
}

TEST(SimulateRanksTest, BothCanBeStuck) {
  StepKit kit;
  const TaskId first = kit.Collective(kGather, {10}, 0);
  // Its communicator's turn comes after that of a collective behind it on its stream.
  const TaskId stuck = kit.Collective(kReduce, {10}, 0, {TaskId(2)});
  kit.Kernel(kCompute, {10}, {stuck});
  kit.SetUse(first, kCollective);
  kit.SetUse(stuck, kCollective);
  SimulationOptions options = Contending();
  options.contention.comes_first = Share::FromPermille(500);
  const Simulation result = kit.Run(options).result;
  EXPECT_EQ(result.outcome, Outcome::kDeadlock);
  EXPECT_EQ(result.stop->task, stuck);
}

}  // namespace
}  // namespace dcsim
