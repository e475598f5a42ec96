#include "sim/search/search.h"

#include <gtest/gtest.h>

#include "model/passes/resolve.h"
#include "model/passes/verify.h"
#include "tests/sim/search/search_kit.h"
#include "tests/sim/test_cluster.h"

namespace dcsim {
namespace {

struct Case {
  Case(int layers, std::uint64_t seed)
      : graph(ProductChain(layers)),
        cluster(ContendedCluster(seed)),
        problem(MakeProblem({graph, nullptr, cluster}, 4)) {}

  SearchResult Run(const SearchSpace& space,
                   const SearchSettings& settings,
                   unsigned threads = 1,
                   std::optional<Bytes> limit = std::nullopt) const {
    Evaluator evaluator(problem, {threads, limit});
    return Search(evaluator, space, settings);
  }

  Graph graph;
  Cluster cluster;
  SearchProblem problem;
};

SearchSettings Exhaustive() {
  SearchSettings settings;
  settings.method = SearchMethod::kExhaustive;
  return settings;
}

SearchSettings Budget(std::uint64_t budget) {
  SearchSettings settings;
  settings.budget = budget;
  return settings;
}

// 4 layers: 4 gathers forward, 3 backward. Persistent 2^4; slots 4! * 3!, joins 2^3 * 2^2; many of
// them are the same launches.
TEST(SearchTest, ExhaustiveTriesEverySchedule) {
  const Case each(4, 1);
  const SearchResult result = each.Run(SmallSpace(64), Exhaustive());
  EXPECT_TRUE(result.complete);
  EXPECT_GT(result.evaluated, 1000U);
  EXPECT_EQ(result.folded, result.evaluated);
  ASSERT_FALSE(result.front.empty());
}

// No schedule of the space is better than what the other strategies find with a tenth of them.
TEST(SearchTest, SearchFindsTheExhaustiveOptimum) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Case each(4, seed);
    const SearchResult all = each.Run(SmallSpace(64), Exhaustive());
    const SearchResult found = each.Run(SmallSpace(64), Budget(all.evaluated / 10));
    ASSERT_FALSE(found.front.empty());
    EXPECT_EQ(found.front.front().score.step_time, all.front.front().score.step_time)
        << "seed " << seed;
  }
}

// The same where the fastest schedules do not fit: the limit is halfway between the least and the
// most that a schedule of the front reserves.
TEST(SearchTest, SearchFindsTheExhaustiveOptimumUnderALimit) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Case each(4, seed);
    const auto front = each.Run(SmallSpace(64), Exhaustive()).front;
    ASSERT_GT(front.size(), 1U);
    const Bytes limit(
        (front.front().score.peak_reserved + front.back().score.peak_reserved).count() / 2);
    const SearchResult all = each.Run(SmallSpace(64), Exhaustive(), 1, limit);
    const SearchResult found = each.Run(SmallSpace(64), Budget(all.evaluated / 10), 1, limit);
    ASSERT_FALSE(found.front.empty());
    EXPECT_EQ(found.front.front().score.step_time, all.front.front().score.step_time)
        << "seed " << seed;
    EXPECT_LE(found.front.front().score.peak_reserved, limit);
  }
}

TEST(SearchTest, EvolutionFindsTheExhaustiveFront) {
  const Case each(3, 2);
  const auto all = each.Run(SmallSpace(64), Exhaustive()).front;
  const auto found = each.Run(SmallSpace(64), Budget(3000)).front;
  ASSERT_EQ(found.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(found[i].score.step_time, all[i].score.step_time);
    EXPECT_EQ(found[i].score.peak_reserved, all[i].score.peak_reserved);
  }
}

bool SameResult(const SearchResult& a, const SearchResult& b) {
  bool same =
      a.evaluated == b.evaluated && a.folded == b.folded && a.front.size() == b.front.size();
  for (std::size_t i = 0; same && i < a.front.size(); ++i) {
    same = a.front[i].score == b.front[i].score && a.front[i].candidate == b.front[i].candidate;
  }
  return same;
}

TEST(SearchTest, ThreadsDoNotChangeTheResult) {
  const Case each(6, 3);
  const SearchSpace space = SmallSpace(64, {{"stage", {1, 2, 3}}, {"communicators", {1, 2}}});
  const SearchResult one = each.Run(space, Budget(4000), 1);
  EXPECT_TRUE(SameResult(one, each.Run(space, Budget(4000), 2)));
  EXPECT_TRUE(SameResult(one, each.Run(space, Budget(4000), 4)));
}

TEST(SearchTest, SeedChangesTheWay) {
  const Case each(6, 3);
  SearchSettings other = Budget(1000);
  other.seed = 1;
  EXPECT_FALSE(SameResult(each.Run(SmallSpace(64), Budget(1000)), each.Run(SmallSpace(64), other)));
}

TEST(SearchTest, EveryScheduleOfTheFrontIsCorrectAndFits) {
  const Case each(6, 4);
  const SearchResult result = each.Run(SmallSpace(64), Budget(2000));
  for (const Scored& scored : result.front) {
    const Plan plan = PlanOf(each.problem, scored.candidate);
    const Schedule schedule = LowerFor(plan, each.problem.inputs);
    EXPECT_EQ(Verify(schedule, each.graph), std::vector<Violation>());
    const Result predicted = Predict(schedule, plan, each.problem.inputs, false).result;
    EXPECT_EQ(predicted.step_time, scored.score.step_time);
    EXPECT_EQ(predicted.peak_reserved, scored.score.peak_reserved);
    EXPECT_EQ(predicted.peak_allocated, scored.score.peak_allocated);
  }
}

// Schedules that release by record_stream are found as those that release in host order: all but
// the front by shortcuts, and the front is what simulating each says, none slower than the best.
TEST(SearchTest, RecordStreamIsRankedAtTheEnd) {
  const Case each(4, 1);
  const SearchSpace space = SmallSpace(64, {{"release", {"record_stream"}}});
  const SearchResult all = each.Run(space, Exhaustive());
  const SearchResult result = each.Run(space, Budget(all.evaluated / 10));
  ASSERT_FALSE(result.front.empty());
  EXPECT_EQ(result.front.front().score.step_time, all.front.front().score.step_time);
  EXPECT_LT(result.evaluated - result.folded, 64U);
  Evaluator evaluator(each.problem, {});
  for (const Scored& scored : result.front) {
    EXPECT_EQ(scored.candidate.options.release, ReleaseMode::kRecordStream);
    EXPECT_EQ(EvaluatePlainly(each.problem, scored.candidate, evaluator.memory_limit()),
              scored.score);
  }
}

// A start whose options the space lacks (here record_stream, which cannot be folded) is scored and
// may win; what is made from it has the space's options.
TEST(SearchTest, StartFromOutsideLeadsInside) {
  const Case each(4, 1);
  const SearchSpace space = SmallSpace(64);
  PlanSpec spec;
  spec.options = space.options.front();
  spec.options.release = ReleaseMode::kRecordStream;
  spec.gather_ahead = 1;
  SearchSettings settings = Budget(1000);
  settings.starts = {MakeCandidate(each.problem, Resolve(spec, each.graph, 4), 0)};
  const SearchResult result = each.Run(space, settings);
  EXPECT_EQ(result.evaluated - result.folded, 1U);
}

TEST(SearchTest, StopGivesWhatWasFound) {
  const Case each(4, 1);
  SearchSettings settings = Budget(100'000);
  int asked = 0;
  settings.should_stop = [&asked] { return ++asked > 3; };
  const SearchResult result = each.Run(SmallSpace(64), settings);
  EXPECT_TRUE(result.stopped);
  EXPECT_FALSE(result.front.empty());
}

TEST(SearchTest, NothingThatFitsNamesTheLeast) {
  const Case each(3, 1);
  const SearchResult all = each.Run(SmallSpace(64), Exhaustive());
  const SearchResult none = each.Run(SmallSpace(64), Exhaustive(), 1, Bytes::MiB(1));
  EXPECT_TRUE(none.front.empty());
  ASSERT_TRUE(none.least.has_value());
  EXPECT_EQ(none.least->score.peak_reserved, all.front.back().score.peak_reserved);
}

}  // namespace
}  // namespace dcsim
