// A schedule that a search reports as fitting fits: replayed with an allocator that has the limit
// set, it neither fails nor gives its cache back once.

#include <gtest/gtest.h>

#include "sim/search/search.h"
#include "tests/sim/search/search_kit.h"
#include "tests/support/row_name.h"
#include "tests/support/source_folder.h"
#include "tests/support/workloads.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

struct LimitRow {
  const char* name;
  const char* folder;
  AllocatorMode allocator;
};

class MemoryLimitTest : public testing::TestWithParam<LimitRow> {
 protected:
  MemoryLimitTest()
      : graph(WorkloadGraph(GetParam().folder)),
        cluster(LoadCluster(SourceFolder() + "/configs/clusters/h200-4.yaml")),
        profile(FindProfile({SourceFolder() + "/traces/" + std::string(GetParam().folder), graph},
                            cluster.gpu.name)),
        problem(MakeProblem({graph, profile ? &*profile : nullptr, cluster}, 4)),
        space(ReadSearchSpace(DefaultSearchSpace(), PointerLocator("default"))) {
    for (ScheduleOptions& options : space.options) {
      options.allocator = GetParam().allocator;
    }
  }

  std::vector<Scored> Front(std::optional<Bytes> limit) const {
    Evaluator evaluator(problem, {1, limit});
    SearchSettings settings;
    settings.budget = 1500;
    return Search(evaluator, space, settings).front;
  }

  /// Three steps from an empty allocator that may reserve `limit`: all that the driver has, or with
  /// `fraction` the process' share of it.
  Simulation Run(const Scored& scored, Bytes limit, bool fraction) const {
    const Schedule schedule = LowerFor(PlanOf(problem, scored.candidate), problem.inputs);
    const auto costs = EstimateWorks(schedule, graph, problem.inputs.profile, cluster);
    SimulationOptions options = OptionsFor(schedule, cluster);
    options.warmup_steps = 0;
    options.measured_steps = 3;
    if (fraction) {
      options.allocator.memory_limit = limit;
    } else {
      options.allocator.capacity = limit;
    }
    return Simulate(schedule, costs, options, {});
  }

  void ExpectFits(const Scored& scored, Bytes limit, bool fraction) const {
    const Simulation result = Run(scored, limit, fraction);
    EXPECT_EQ(result.outcome, Outcome::kCompleted);
    EXPECT_EQ(result.memory.retries, 0);
    EXPECT_EQ(result.memory.reserved.peak, scored.score.peak_reserved);
    EXPECT_LE(result.memory.reserved.peak, limit);
  }

  Graph graph;
  Cluster cluster;
  std::optional<Profile> profile;
  SearchProblem problem;
  SearchSpace space;
};

INSTANTIATE_TEST_SUITE_P(
    Committed,
    MemoryLimitTest,
    testing::Values(
        LimitRow{"Llama1b", "llama-3.2-1b", AllocatorMode::kDefault},
        LimitRow{"Llama1bExpandable", "llama-3.2-1b", AllocatorMode::kExpandableSegments},
        LimitRow{"Mlp", "mlp-8x4096", AllocatorMode::kDefault},
        LimitRow{"Qwen1b", "qwen3-1.7b", AllocatorMode::kDefault},
        LimitRow{"TinyLlama", "tiny-llama", AllocatorMode::kDefault},
        LimitRow{"TinyLlamaExpandable", "tiny-llama", AllocatorMode::kExpandableSegments}),
    RowName());

// Limits at a quarter, half and three quarters of the way from the least to the most that schedules
// of the whole front reserve.
TEST_P(MemoryLimitTest, WhatFitsNeverRetries) {
  const auto whole = Front(std::nullopt);
  ASSERT_FALSE(whole.empty());
  const Bytes most = whole.front().score.peak_reserved;
  const Bytes least = whole.back().score.peak_reserved;
  for (const std::int64_t quarter : {1, 2, 3}) {
    const Bytes limit = least + Bytes((most - least).count() / 4 * quarter);
    SCOPED_TRACE("limit " + std::to_string(limit.count()));
    for (const Scored& scored : Front(limit)) {
      ExpectFits(scored, limit, /*fraction=*/false);
      if (GetParam().allocator == AllocatorMode::kDefault) {
        ExpectFits(scored, limit, /*fraction=*/true);
      }
    }
  }
}

// The limit may be what the schedule reserves, to the byte; one byte less is too little.
TEST_P(MemoryLimitTest, ScheduleFitsInWhatItReserves) {
  for (const Scored& scored : Front(std::nullopt)) {
    const Bytes reserved = scored.score.peak_reserved;
    ExpectFits(scored, reserved, /*fraction=*/false);
    const Simulation result = Run(scored, reserved - Bytes(1), /*fraction=*/false);
    EXPECT_TRUE(result.outcome == Outcome::kOutOfMemory || result.memory.retries > 0);
  }
}

}  // namespace
}  // namespace dcsim
