#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/passes/resolve.h"
#include "tests/support/error_text.h"
#include "tests/support/row_name.h"

namespace dcsim {
namespace {

/// Three layers of two ops each. Positions of first uses: w1 at 0, w2 and b2 at 2, w3 at 4 in the
/// forward, w3 at 0 and w2 at 1 in the backward; w1 and b2 are not used there.
Graph ThreeLayers() {
  return ParseGraphText(R"(
graph three-layers 1 tokens
param layers.0.weight float32[4]
param layers.1.weight float32[4]
param layers.1.bias float32[4]
param layers.2.weight float32[4]
input x float32[4]
forward
  a: float32[4] = my::linear(x, layers.0.weight)
  c: float32[4] = my::relu(a)
  d: float32[4] = my::linear(c, layers.1.bias, layers.1.weight)
  e: float32[4] = my::relu(d)
  f: float32[4] = my::linear(e, layers.2.weight)
  l: float32[] = my::loss(f)
  loss l
  save a
backward
  tangent t: float32[] of l
  g: float32[4] = my::grad(t, layers.2.weight)
  h: float32[4] = my::grad(g, layers.1.weight)
  i: float32[4] = my::grad(h, a)
  gradient layers.0.weight = i
)");
}

PlanSpec Spec(int stage, std::int64_t ahead) {
  PlanSpec spec;
  spec.options.stage = stage;
  spec.gather_ahead = ahead;
  return spec;
}

using Gather = std::pair<std::size_t, std::size_t>;  // position, parameter

std::vector<Gather> Gathers(const GraphPlan& decisions) {
  std::vector<Gather> gathers;
  for (const GatherGroup& group : decisions.gathers) {
    EXPECT_EQ(group.params.size(), 1U) << "each gather is a launch of its own";
    gathers.emplace_back(group.position, group.params.at(0).index());
  }
  return gathers;
}

TEST(PlainPolicyTest, OpsKeepTheRecordedOrder) {
  const Plan plan = Resolve(Spec(3, 0), ThreeLayers(), 2);
  ASSERT_EQ(plan.graphs.size(), 2U);
  EXPECT_THAT(plan.graphs[0].order,
              testing::ElementsAre(OpId(0), OpId(1), OpId(2), OpId(3), OpId(4), OpId(5)));
  EXPECT_THAT(plan.graphs[1].order, testing::ElementsAre(OpId(6), OpId(7), OpId(8)));
}

TEST(PlainPolicyTest, OptionsAndRanksAreTakenOver) {
  PlanSpec spec = Spec(3, 0);
  spec.options.communicators = 2;
  const Plan plan = Resolve(spec, ThreeLayers(), 6);
  EXPECT_EQ(plan.policy, "plain-1");
  EXPECT_EQ(plan.ranks, 6);
  EXPECT_EQ(plan.options, spec.options);
}

// Both parameters of layer 1 are first used at 2; the one declared first goes first.
TEST(PlainPolicyTest, GathersStandAtFirstUses) {
  const Plan plan = Resolve(Spec(3, 0), ThreeLayers(), 2);
  EXPECT_EQ(Gathers(plan.graphs[0]), (std::vector<Gather>{{0, 0}, {2, 1}, {2, 2}, {4, 3}}));
  EXPECT_EQ(Gathers(plan.graphs[1]), (std::vector<Gather>{{0, 3}, {1, 1}}));
}

// One parameter ahead: each gather stands where the parameter before it is first used.
TEST(PlainPolicyTest, GathersOneAheadStandOneFirstUseEarlier) {
  const Plan plan = Resolve(Spec(3, 1), ThreeLayers(), 2);
  EXPECT_EQ(Gathers(plan.graphs[0]), (std::vector<Gather>{{0, 0}, {0, 1}, {2, 2}, {2, 3}}));
  EXPECT_EQ(Gathers(plan.graphs[1]), (std::vector<Gather>{{0, 3}, {0, 1}}));
}

// Two ahead: weight 1 and bias 1 have fewer than two before them.
TEST(PlainPolicyTest, GathersTwoAheadStandTwoFirstUsesEarlier) {
  const Plan plan = Resolve(Spec(3, 2), ThreeLayers(), 2);
  EXPECT_EQ(Gathers(plan.graphs[0]), (std::vector<Gather>{{0, 0}, {0, 1}, {0, 2}, {2, 3}}));
}

TEST(PlainPolicyTest, GathersFarAheadStandBeforeTheFirstOp) {
  const Plan plan = Resolve(Spec(3, 1000), ThreeLayers(), 2);
  EXPECT_EQ(Gathers(plan.graphs[0]), (std::vector<Gather>{{0, 0}, {0, 1}, {0, 2}, {0, 3}}));
}

TEST(PlainPolicyTest, OnlyZero3Gathers) {
  for (const int stage : {1, 2}) {
    const Plan plan = Resolve(Spec(stage, 0), ThreeLayers(), 2);
    EXPECT_TRUE(plan.graphs[0].gathers.empty()) << stage;
  }
}

struct Pattern {
  const char* name;
  std::vector<std::string> patterns;
  std::vector<ParamId> kept;
};

class KeepGatheredTest : public testing::TestWithParam<Pattern> {};

TEST_P(KeepGatheredTest, KeepsWhatMatches) {
  PlanSpec spec = Spec(3, 0);
  spec.keep_gathered.patterns = GetParam().patterns;
  EXPECT_EQ(Resolve(spec, ThreeLayers(), 2).persistent, GetParam().kept);
}

// 0: layers.0.weight, 1: layers.1.weight, 2: layers.1.bias, 3: layers.2.weight.
INSTANTIATE_TEST_SUITE_P(
    Patterns,
    KeepGatheredTest,
    testing::Values(
        Pattern{"None", {}, {}},
        Pattern{"WholeName", {"layers.1.bias"}, {ParamId(2)}},
        Pattern{"Suffix", {"*.weight"}, {ParamId(0), ParamId(1), ParamId(3)}},
        Pattern{"Prefix", {"layers.1.*"}, {ParamId(1), ParamId(2)}},
        Pattern{"Middle", {"layers.*.bias"}, {ParamId(2)}},
        Pattern{"Everything", {"*"}, {ParamId(0), ParamId(1), ParamId(2), ParamId(3)}},
        // The first "1" of a run of them is not the last: the star must give way.
        Pattern{"StarThatGivesWay", {"*1*weight"}, {ParamId(1)}},
        Pattern{"StarsForNothing", {"layers.1.bias**"}, {ParamId(2)}},
        Pattern{"SeveralInIdOrder", {"layers.2.*", "layers.0.weight"}, {ParamId(0), ParamId(3)}}),
    RowName());

TEST(PlainPolicyTest, KeepAllKeepsEveryParameter) {
  PlanSpec spec = Spec(3, 0);
  spec.keep_gathered.all = true;
  EXPECT_EQ(Resolve(spec, ThreeLayers(), 2).persistent.size(), 4U);
}

TEST(PlainPolicyTest, PatternThatMatchesNothingIsAnError) {
  PlanSpec spec = Spec(3, 0);
  spec.keep_gathered.patterns = {"layers.1.*", "layers.1.bais"};
  EXPECT_EQ(ErrorText([&] { Resolve(spec, ThreeLayers(), 2); }),
            "keep_gathered: no parameter matches 'layers.1.bais', did you mean 'layers.1.bias'?");
}

// A pattern is no prefix and no part of a name.
TEST(PlainPolicyTest, PatternMustCoverTheWholeName) {
  PlanSpec spec = Spec(3, 0);
  spec.keep_gathered.patterns = {"bias"};
  EXPECT_EQ(ErrorText([&] { Resolve(spec, ThreeLayers(), 2); }),
            "keep_gathered: no parameter matches 'bias'");
}

}  // namespace
}  // namespace dcsim
