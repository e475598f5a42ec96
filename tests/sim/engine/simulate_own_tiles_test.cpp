// Products some of whose thread blocks find no multiprocessor, worked out by hand.

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

using enum StreamRole;
using enum DeviceUse;

/// What runs on another stream from 0 on, while a product of 100 comes at 20 whose last thread
/// blocks were given so much of it beforehand; others end at 120.
struct OwnTilesCase {
  const char* name;
  std::int64_t own;         // ns
  bool copy;                // a copy of 50 first, and collectives behind it
  std::int64_t collective;  // ns, or 0 for none
  std::int64_t queued;      // ns of a second one, behind the first at once, or 0
  std::int64_t end;         // of the product
};

class OwnTilesTest : public testing::TestWithParam<OwnTilesCase> {};

// Thread blocks that find no multiprocessor wait for what keeps it, or for the product's others,
// and compute what they were given. Between two collectives they get in. Behind a copy the product
// begins when the collective does.
TEST_P(OwnTilesTest, WaitForMultiprocessors) {
  StepKit kit;
  if (GetParam().copy) {
    kit.Kernel(kReduce, {50});
  }
  for (const std::int64_t ns : {GetParam().collective, GetParam().queued}) {
    if (ns > 0) {
      kit.SetUse(kit.Collective(kReduce, {ns}), kCollective);
    }
  }
  const TaskId before = kit.Kernel(kGather, {20});
  const TaskId product = kit.Kernel(kCompute, {100}, {before});
  kit.SetUse(product, kMatmul);
  kit.SetOwnTiles(product, GetParam().own, 100);
  EXPECT_EQ(kit.Run(Contending()).at(product), (Interval{20, GetParam().end}));
}

INSTANTIATE_TEST_SUITE_P(Beside,
                         OwnTilesTest,
                         testing::Values(OwnTilesCase{"Nothing", 100, false, 0, 0, 120},
                                         OwnTilesCase{"ACollective", 100, false, 50, 0, 150},
                                         OwnTilesCase{"ALongOne", 100, false, 300, 0, 220},
                                         OwnTilesCase{"Two", 100, false, 50, 250, 150},
                                         OwnTilesCase{"ACopy", 100, true, 0, 0, 150},
                                         OwnTilesCase{"ACopyAndACollective", 100, true, 250, 0,
                                                      250},
                                         OwnTilesCase{"HalfOfItInTime", 50, false, 50, 0, 120},
                                         OwnTilesCase{"HalfOfItLate", 50, false, 90, 0, 140},
                                         OwnTilesCase{"HalfOfItLast", 50, false, 300, 0, 170}),
                         [](const auto& row) { return row.param.name; });

// Alone at 0.5 while the collective is there, so its work is done at 135; late thread blocks end
// at 150.
TEST(SimulateOwnTilesTest, OthersLoseSpeedMeanwhile) {
  StepKit kit;
  const TaskId gather = kit.Collective(kGather, {50});
  kit.SetUse(gather, kCollective);
  const TaskId before = kit.Kernel(kCopy, {20});
  const TaskId product = kit.Kernel(kCompute, {100}, {before});
  kit.SetUse(product, kMatmul);
  SimulationOptions options = Contending();
  SetRate(options, kMatmul, kCollective, 500);
  EXPECT_EQ(kit.Run(options).at(product), (Interval{20, 135}));
  kit.SetOwnTiles(product, 100, 100);
  EXPECT_EQ(kit.Run(options).at(product), (Interval{20, 150}));
}

// Until 60 a collective keeps the product's last thread blocks waiting. Its others end at 120 and
// leave room for the next collective; without own tiles that finds the place of the first one at
// once.
TEST(SimulateOwnTilesTest, TheNextCollectiveTakesThePlacesOfThoseThatHaveEnded) {
  for (const bool own_tiles : {false, true}) {
    StepKit kit;
    const TaskId gather = kit.Collective(kGather, {50});
    const TaskId before = kit.Kernel(kCopy, {20});
    const TaskId later = kit.Collective(kReload, {60}, 2);
    const TaskId product = kit.Kernel(kCompute, {100}, {before});
    const TaskId reduction = kit.Collective(kReduce, {30}, 1, {later});
    for (const TaskId each : {gather, later, reduction}) {
      kit.SetUse(each, kCollective);
    }
    kit.SetUse(product, kMatmul);
    kit.SetRoom(product, 100);
    if (own_tiles) {
      kit.SetOwnTiles(product, 100, 100);
    }
    const RunRecord run = kit.Run(Contending());
    EXPECT_EQ(run.at(product), (Interval{20, own_tiles ? 160 : 120}));
    EXPECT_EQ(run.at(reduction).end, own_tiles ? 150 : 90);
  }
}

// A collective of few thread blocks displaces none that others miss.
TEST(SimulateOwnTilesTest, ASmallCollectiveKeepsNoneWaiting) {
  StepKit kit;
  const TaskId gather = kit.Collective(kGather, {300});
  const TaskId before = kit.Kernel(kCopy, {20});
  const TaskId product = kit.Kernel(kCompute, {100}, {before});
  kit.SetUse(gather, kCollective);
  kit.SetUse(product, kMatmul);
  kit.SetDemand(gather, 250);
  kit.SetOwnTiles(product, 100, 100);
  EXPECT_EQ(kit.Run(Contending()).at(product), (Interval{20, 120}));
}

// Nor do copies of a side stream that move bytes in less than half of their time. Of others, 30
// each, the product waits for the one that runs, and its last thread blocks for its others.
TEST(SimulateOwnTilesTest, ManyShortCopiesKeepNoneWaiting) {
  for (const auto& [demand, end] : {std::pair{499, 120}, std::pair{500, 230}}) {
    StepKit kit;
    const TaskId copies = kit.Kernel(kReduce, {300});
    const TaskId before = kit.Kernel(kGather, {20});
    const TaskId product = kit.Kernel(kCompute, {100}, {before});
    kit.SetUse(product, kMatmul);
    kit.SetDemand(copies, demand);
    kit.SetLaunches(copies, 10);
    kit.SetOwnTiles(product, 100, 100);
    EXPECT_EQ(kit.Run(Contending()).at(product), (Interval{20, end})) << demand;
  }
}

// Behind copies of 60 on its stream a product of 40: until then multiprocessors are free, and
// nothing slows the copies.
TEST(SimulateOwnTilesTest, CopiesOfInputsNeedNoMultiprocessors) {
  StepKit kit;
  const TaskId inputs = kit.Kernel(kCompute, {60});
  const TaskId product = kit.Kernel(kCompute, {40});
  const TaskId before = kit.Kernel(kCopy, {20});
  const TaskId gather = kit.Collective(kGather, {30}, 0, {before});
  kit.SetUse(inputs, DeviceUse::kCopyEngine);
  kit.SetUse(gather, kCollective);
  kit.SetUse(product, kMatmul);
  kit.SetRoom(product, 40);
  SimulationOptions options = Contending();
  SetRate(options, kMatmul, kCollective, 500);
  const RunRecord run = kit.Run(options);
  EXPECT_EQ(run.at(gather), (Interval{20, 50}));
  EXPECT_EQ(run.at(inputs), (Interval{0, 60}));
  EXPECT_EQ(run.at(product), (Interval{60, 100}));
}

}  // namespace
}  // namespace dcsim
