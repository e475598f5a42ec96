#include "sim/search/persistence.h"

#include <gtest/gtest.h>

#include "sim/search/random.h"
#include "tests/sim/search/search_kit.h"
#include "tests/sim/test_cluster.h"

namespace dcsim {
namespace {

KeepItem Item(std::size_t id, std::int64_t bytes, std::int64_t saved_ns) {
  return {ParamId(id), Bytes(bytes), Duration::FromNs(saved_ns)};
}

// Most time by byte first would take the item of 6 bytes (10 / 6) and then nothing else fits; the
// two of 5 bytes save 16.
TEST(ChooseKeptTest, IsNotGreedy) {
  const KeepChoice choice = ChooseKept({Item(0, 6, 10), Item(1, 5, 8), Item(2, 5, 8)}, Bytes(10));
  EXPECT_EQ(choice.params, (std::vector<ParamId>{ParamId(1), ParamId(2)}));
  EXPECT_EQ(choice.saved, Duration::FromNs(16));
  EXPECT_EQ(choice.bytes, Bytes(10));
  EXPECT_EQ(choice.bound, choice.saved);
}

TEST(ChooseKeptTest, TakesEverythingThatFits) {
  const KeepChoice choice = ChooseKept({Item(3, 6, 1), Item(1, 5, 8)}, Bytes(11));
  EXPECT_EQ(choice.params, (std::vector<ParamId>{ParamId(1), ParamId(3)}));
}

TEST(ChooseKeptTest, TakesNothingWithoutMemory) {
  const KeepChoice choice = ChooseKept({Item(0, 6, 10)}, Bytes(0));
  EXPECT_TRUE(choice.params.empty());
  EXPECT_EQ(choice.bound, Duration());
  EXPECT_TRUE(ChooseKept({Item(0, 6, 10)}, Bytes(-5)).params.empty());
}

// Every subset of 12 items.
TEST(ChooseKeptTest, IsTheBestOfAllSubsets) {
  Random random(11);
  for (int round = 0; round < 50; ++round) {
    std::vector<KeepItem> items;
    for (std::size_t i = 0; i < 12; ++i) {
      items.push_back(Item(i, 1 + static_cast<std::int64_t>(random.Below(8)),
                           1 + static_cast<std::int64_t>(random.Below(20))));
    }
    const auto budget = static_cast<std::int64_t>(random.Below(40));
    std::int64_t best = 0;
    for (unsigned subset = 0; subset < 1U << items.size(); ++subset) {
      std::int64_t bytes = 0;
      std::int64_t saved = 0;
      for (std::size_t i = 0; i < items.size(); ++i) {
        bytes += (subset >> i & 1U) != 0 ? items[i].bytes.count() : 0;
        saved += (subset >> i & 1U) != 0 ? items[i].saved.ns() : 0;
      }
      best = bytes <= budget ? std::max(best, saved) : best;
    }
    const KeepChoice choice = ChooseKept(items, Bytes(budget));
    EXPECT_EQ(choice.saved.ns(), best);
    EXPECT_EQ(choice.bound.ns(), best);
    EXPECT_LE(choice.bytes.count(), budget);
  }
}

// Cut off at once, it still gives a choice that fits and a bound that nothing exceeds.
TEST(ChooseKeptTest, BoundHoldsWhereTheSearchWasCutOff) {
  const std::vector<KeepItem> items = {Item(0, 6, 10), Item(1, 5, 8), Item(2, 5, 8)};
  const KeepChoice choice = ChooseKept(items, Bytes(10), 1);
  EXPECT_GE(choice.bound, Duration::FromNs(16));
  EXPECT_LE(choice.bytes, Bytes(10));
}

// w1 and w2 are gathered in forward and backward; w0 in the forward alone. 4 ranks; a ring of 100
// GB/s and 10 us: 3/4 of the bytes take 3/4 * bytes / 100 GB/s.
TEST(FindKeepItemsTest, SaveTheGathersBeyondTheFirst) {
  const Graph graph = ProductChain(3);
  const Cluster cluster = HandCluster();
  const SearchProblem problem = MakeProblem({graph, nullptr, cluster}, 4);
  const auto items = FindKeepItems(problem, ScheduleOptions());
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].param, ParamId(1));
  EXPECT_EQ(items[0].bytes, Bytes(2 * graph.numel(ParamId(1))));
  const double wire = 0.75 * static_cast<double>(items[0].bytes.count());
  EXPECT_NEAR(static_cast<double>(items[0].saved.ns()), 10'000 + wire / 100, 1);
}

// In 3 micro-steps w0 is gathered 3 times and w1 6 times; kept, once each.
TEST(FindKeepItemsTest, CountMicroSteps) {
  const Graph graph = ProductChain(2);
  const Cluster cluster = HandCluster();
  const SearchProblem problem = MakeProblem({graph, nullptr, cluster}, 4);
  ScheduleOptions options;
  options.gradient_accumulation_steps = 3;
  const auto items = FindKeepItems(problem, options);
  ASSERT_EQ(items.size(), 2U);
  const auto time = [&](std::size_t i) { return static_cast<double>(items[i].saved.ns()); };
  const auto gather = [&](std::size_t i) {
    return 10'000 + 0.75 * static_cast<double>(items[i].bytes.count()) / 100;
  };
  EXPECT_NEAR(time(0), 2 * gather(0), 2);
  EXPECT_NEAR(time(1), 5 * gather(1), 5);
}

}  // namespace
}  // namespace dcsim
