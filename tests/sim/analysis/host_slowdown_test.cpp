#include "sim/analysis/host_slowdown.h"

#include <cmath>

#include <gtest/gtest.h>

#include "model/passes/resolve.h"
#include "tests/sim/test_cluster.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

/// A step of TwoLayers on two ranks.
struct Step {
  std::optional<double> Slowdown(const std::vector<RankReadings>& ranks) const {
    return HostSlowdown(ranks, LowerFor(plan, inputs), inputs);
  }
  Duration Launches(double count) const {
    return Duration::FromNs(std::llround(count * static_cast<double>(cluster.host.launch.ns())));
  }
  /// What a rank took for the forward: two products, of 1.9 launches each (LaunchesOf), and a
  /// sum.
  RankReadings Read(double slowdown) const {
    RankReadings rank;
    rank.host = {3, {Launches(4.8 * slowdown)}, std::nullopt};
    return rank;
  }

  Graph graph = TwoLayers();
  Cluster cluster = HandCluster();
  Plan plan = Resolve(TinySpec(1), graph, 2);
  PredictionInputs inputs{graph, nullptr, cluster};
};

TEST(HostSlowdownTest, TheSlowestRankCounts) {
  const Step step;
  EXPECT_NEAR(*step.Slowdown({step.Read(1.25), step.Read(1.75), step.Read(1.5)}), 1.75, 1e-9);
}

// Of three stretches of an op each, products at both ends, the first was not read.
TEST(HostSlowdownTest, StretchesThatWereReadCount) {
  const Step step;
  RankReadings rank;
  rank.host = {1, {std::nullopt, step.Launches(1), step.Launches(1.9 * 2)}, std::nullopt};
  EXPECT_NEAR(*step.Slowdown({rank}), (1 + 1.9 * 2) / 2.9, 1e-9);
}

TEST(HostSlowdownTest, HostsThatWereReadInLessThanHalfOfAStepAreNotKnown) {
  const Step step;
  RankReadings rank;
  rank.host = {1, {std::nullopt, step.Launches(9), std::nullopt}, std::nullopt};
  EXPECT_FALSE(step.Slowdown({rank}));
  EXPECT_NEAR(*step.Slowdown({rank, step.Read(1.5)}), 1.5, 1e-9);
}

TEST(HostSlowdownTest, NothingIsKnownWithoutReadings) {
  EXPECT_FALSE(Step().Slowdown({}));
  EXPECT_FALSE(Step().Slowdown({RankReadings(), RankReadings()}));
}

}  // namespace
}  // namespace dcsim
