#include "sim/search/candidate.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/ir/plan_options.h"
#include "model/passes/resolve.h"
#include "sim/search/moves.h"
#include "tests/sim/random_step.h"
#include "tests/sim/search/search_kit.h"
#include "tests/sim/test_cluster.h"

namespace dcsim {
namespace {

TEST(CandidateTest, PlanComesBackFromItsCandidate) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const RandomStep step = MakeRandomStep(seed);
    const Plan plan = WithoutEvents(step.plan);
    const Cluster cluster = HandCluster();
    SearchProblem problem = MakeProblem({step.graph, nullptr, cluster}, plan.ranks);
    const std::uint32_t order = AddOrder(problem, plan);
    Plan found = PlanOf(problem, MakeCandidate(problem, plan, order));
    EXPECT_EQ(found.policy, "search");
    found.policy = plan.policy;
    EXPECT_EQ(found, plan) << "seed " << seed;
  }
}

TEST(CandidateTest, RecordedOrderIsNotAddedTwice) {
  const Graph graph = ProductChain(2);
  const Cluster cluster = HandCluster();
  SearchProblem problem = MakeProblem({graph, nullptr, cluster}, 2);
  EXPECT_EQ(AddOrder(problem, Resolve(PlanSpec(), graph, 2)), 0U);
  EXPECT_EQ(problem.orders.size(), 1U);
}

// Weight and bias of a layer are first used by one op. At that op neither's gather is ahead; at the
// op of the layer before, whose last parameter is the bias, the weight's is one ahead, the bias's
// two.
TEST(CandidateTest, ParametersFirstUsedByOneOpAreNotAheadOfEachOther) {
  const Graph graph = ParseGraphText(R"(
graph biased 512 tokens
param w0 bfloat16[64,64]
param b0 bfloat16[64]
param w1 bfloat16[64,64]
param b1 bfloat16[64]
input a0 bfloat16[512,64]
forward
  a1: bfloat16[512,64] = aten::addmm(b0, a0, w0)
  a2: bfloat16[512,64] = aten::addmm(b1, a1, w1)
  l: bfloat16[] = aten::sum(a2)
  loss l
)");
  const Cluster cluster = HandCluster();
  const SearchProblem problem = MakeProblem({graph, nullptr, cluster}, 2);
  const auto admits = [&](std::int64_t most_ahead, std::uint32_t weight, std::uint32_t bias) {
    const SearchSpace space = SmallSpace(most_ahead);
    const Moves moves(problem, space);
    const GraphChoices choices = {{0, false}, {0, false}, {weight, false}, {bias, false}};
    const std::vector<GatherSite>& sites = moves.sites(0)[0];
    return moves.rules().Admit(sites, EncodeGathers(sites, choices), {0, 0, 0, 0});
  };
  EXPECT_TRUE(admits(0, 1, 1));
  EXPECT_FALSE(admits(0, 0, 1));
  EXPECT_TRUE(admits(1, 0, 1));
  EXPECT_FALSE(admits(1, 0, 0));
  EXPECT_TRUE(admits(2, 0, 0));
}

// Whatever random changes make lies in the space and is a plan that can be lowered.
TEST(CandidateTest, ChangesStayInTheSpace) {
  const Graph graph = ProductChain(6);
  const Cluster cluster = HandCluster();
  const SearchProblem problem = MakeProblem({graph, nullptr, cluster}, 4);
  SearchSpace space = SmallSpace(3);
  space.gathers.most_in_flight = Bytes::MiB(100);
  space.gathers.never_kept = {{"w1", "space"}};
  space.gathers.always_gathered = {{"w2", "space"}};
  const Moves moves(problem, space);
  Random random(5);
  Candidate candidate = moves.Uniform(space.options.front(), 2, 1, {});
  for (int i = 0; i < 500; ++i) {
    candidate = moves.Mutate(candidate, random);
    ASSERT_EQ(FindPlanFaults(PlanOf(problem, candidate), graph), std::vector<std::string>());
    ASSERT_EQ(candidate.persistent[1], 0);
    ASSERT_EQ(candidate.persistent[2], 1);
    for (std::size_t g = 0; g < candidate.gathers.size(); ++g) {
      ASSERT_TRUE(
          moves.rules().Admit(moves.sites(0)[g], candidate.gathers[g], candidate.persistent));
    }
  }
}

TEST(CandidateTest, ChoicesComeBackFromTheirLaunches) {
  const Graph graph = ProductChain(4);
  const Cluster cluster = HandCluster();
  const SearchProblem problem = MakeProblem({graph, nullptr, cluster}, 4);
  const auto sites = FindGatherSites(problem, 0)[0];
  ASSERT_EQ(sites.size(), 4U);
  // w0 and w1 together at once, w2 by itself at the same place, w3 at its use.
  const GraphChoices choices = {{0, false}, {0, true}, {0, false}, {sites[3].first, false}};
  const GraphGathers gathers = EncodeGathers(sites, choices);
  ASSERT_EQ(gathers.launches.size(), 3U);
  EXPECT_EQ(gathers.launches[0], (GatherLaunch{0, 2}));
  EXPECT_EQ(gathers.launches[1], (GatherLaunch{0, 3}));
  EXPECT_EQ(gathers.launches[2], (GatherLaunch{sites[3].first, 4}));
  EXPECT_EQ(DecodeGathers(sites, gathers), choices);
}

std::size_t CountKept(const Candidate& candidate) {
  return static_cast<std::size_t>(
      std::count(candidate.persistent.begin(), candidate.persistent.end(), 1));
}

std::size_t CountLaunches(const Candidate& candidate) {
  std::size_t launches = 0;
  for (const GraphGathers& gathers : candidate.gathers) {
    launches += gathers.launches.size();
  }
  return launches;
}

/// A candidate with some parameters kept and some launches of two, and one move away from it.
struct MovedCase {
  explicit MovedCase(const Move& move)
      : graph(ProductChain(6)),
        cluster(HandCluster()),
        problem(MakeProblem({graph, nullptr, cluster}, 4)),
        space(SmallSpace(64)),
        moves(problem, space),
        before(moves.Uniform(space.options.front(), 2, 2, {1, 0, 1, 0, 0, 0})) {
    Random random(5);
    for (int i = 0; i < 50; ++i) {
      after.push_back(moves.Apply(before, move, random));
    }
  }

  Graph graph;
  Cluster cluster;
  SearchProblem problem;
  SearchSpace space;
  Moves moves;
  Candidate before;
  std::vector<Candidate> after;
};

TEST(MovesTest, SwapKeepsTheNumberOfKept) {
  const MovedCase each({Move::Action::kSwapKept, Move::Scope::kOne});
  for (const Candidate& after : each.after) {
    EXPECT_NE(after.persistent, each.before.persistent);
    EXPECT_EQ(CountKept(after), CountKept(each.before));
  }
}

// A launch holds two at most here, so that a gather can leave one for another: launches may stay as
// many, and never become more.
TEST(MovesTest, JoinMakesNoLaunches) {
  const MovedCase each({Move::Action::kJoin, Move::Scope::kOne});
  for (const Candidate& after : each.after) {
    EXPECT_LE(CountLaunches(after), CountLaunches(each.before));
  }
}

// Each decision moves both halves of the hash.
TEST(CandidateTest, EveryDecisionIsInTheHash) {
  const Graph graph = ProductChain(4);
  const Cluster cluster = HandCluster();
  const SearchProblem problem = MakeProblem({graph, nullptr, cluster}, 4);
  const SearchSpace space = SmallSpace(8);
  const Moves moves(problem, space);
  const Candidate base = moves.Uniform(space.options.front(), 0, 1, {});
  std::vector<Candidate> others(6, base);
  others[0].options.double_buffer = false;
  others[1].options.gradient_clipping = 1.0;
  others[2].order = 1;
  others[3].persistent[3] = 1;
  others[4].gathers[0].launches[1].position = 0;
  others[5].gathers[0].launches.erase(others[5].gathers[0].launches.begin());
  std::set<std::uint64_t> first = {HashOf(base)[0]};
  std::set<std::uint64_t> second = {HashOf(base)[1]};
  for (const Candidate& other : others) {
    first.insert(HashOf(other)[0]);
    second.insert(HashOf(other)[1]);
  }
  EXPECT_EQ(first.size(), 7U);
  EXPECT_EQ(second.size(), 7U);
}

/// A value of the option that is not `now`.
Json OtherValue(const PlanOption& option, const Json& now) {
  if (!option.names.empty()) {
    return now == option.names.front() ? option.names.back() : option.names.front();
  }
  if (now.is_boolean()) {
    return !now.get<bool>();
  }
  if (now.is_number_integer()) {
    return now == option.least ? option.most : option.least;
  }
  return option.least == option.most ? Json(2) : Json("7 elements");  // a norm, or a bucket
}

TEST(CandidateTest, EveryOptionIsInTheHash) {
  Candidate candidate;
  const CandidateHash base = HashOf(candidate);
  for (const PlanOption& option : PlanOptions()) {
    Candidate other = candidate;
    const Json alone = {{option.key, OtherValue(option, option.print(option, other.options))}};
    Faults faults(PointerLocator("o"));
    const Path root;
    ObjectReader object(alone, root, faults);
    option.read(option, object, other.options);
    faults.ThrowIfAny();
    EXPECT_NE(HashOf(other), base) << option.key;
  }
}

}  // namespace
}  // namespace dcsim
