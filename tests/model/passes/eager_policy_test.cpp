#include "model/passes/eager_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "model/passes/verify.h"
#include "tests/support/event_text.h"
#include "tests/support/workloads.h"

namespace dcsim {
namespace {

/// Four modules of one product each, 10, 20, 30 and 40 elements; n is a norm of 2.
Graph FourModules() {
  return ParseGraphText(R"(
graph four 1 tokens
param a bfloat16[10]
param b bfloat16[20]
param n bfloat16[2]
param c bfloat16[30]
param d bfloat16[40]
input x bfloat16[1]
forward
  ya: bfloat16[1] = my::op(x, a) @a
  yb: bfloat16[1] = my::op(ya, b) @b
  yn: bfloat16[1] = my::op(yb, n) @n
  yc: bfloat16[1] = my::op(yn, c) @c
  yd: bfloat16[1] = my::op(yc, d) @d
  l: bfloat16[] = my::op(yd)
  loss l
backward of 0
  tangent t: bfloat16[] of l
  gd: bfloat16[1] = my::op(t, d) @d
  gc: bfloat16[1] = my::op(gd, c) @c
  gn: bfloat16[1] = my::op(gc, n) @n
  gb: bfloat16[1] = my::op(gn, b) @b
  ga: bfloat16[10] = my::op(gb) @a
  gradient a = ga
)");
}

PlanSpec EagerSpec(const EagerGathers& gathers) {
  PlanSpec spec;
  spec.policy = "deepspeed-eager";
  spec.options.stage = 3;
  spec.options.gradient_buckets = GradientBuckets::kEager;
  spec.eager_gathers = gathers;
  return spec;
}

std::vector<std::string> TextsOf(const EagerGathers& gathers) {
  const Graph graph = FourModules();
  const Plan plan = Resolve(EagerSpec(gathers), graph, 2);
  EXPECT_THAT(FindPlanFaults(plan, graph), testing::IsEmpty());
  EXPECT_THAT(Verify(Lower(plan, graph, nullptr, {}), graph), testing::IsEmpty());
  return {EventText(graph, plan.graphs[0]), EventText(graph, plan.graphs[1])};
}

// Nothing ahead, nothing kept: each module gathers and frees its own.
TEST(EagerPolicyTest, WithoutReachEachModuleGathersAndFreesItsOwn) {
  EXPECT_THAT(TextsOf({0, 0, 1000, 0}),
              testing::ElementsAre("Ga Wa |Fa Gb Wb |Fb Gn Wn |Fn Gc Wc |Fc Gd Wd |Fd |",
                                   "Gd Wd |Fd Gc Wc |Fc Gn Wn |Fn Gb Wb |Fb |Ra "));
}

// 25 elements ahead: behind a's wait b (20 < 25) and then n (22 < 25) and then c join one group,
// which overshoots by c; behind b's, d alone; nothing is left for the others. Backward: c, n and b
// would be 52: c (30) reaches the budget; then n and b.
TEST(EagerPolicyTest, ModulesAheadAreGatheredUntilTheBucketIsFull) {
  EXPECT_THAT(TextsOf({25, 0, 1000, 0}),
              testing::ElementsAre("Ga Wa Gb,n,c |Fa Wb Gd |Fb Wn |Fn Wc |Fc Wd |Fd |",
                                   "Gd Wd Gc |Fd Wc Gn,b |Fc Wn |Fn Wb |Fb |Ra "));
}

// No more than 15 elements alive: a's 10 leave 5 for others, b passes them and is the last.
TEST(EagerPolicyTest, WhatIsAliveLimitsWhatIsGatheredAhead) {
  EXPECT_EQ(TextsOf({25, 0, 15, 0})[0], "Ga Wa Gb |Fa Wb |Fb Gn Wn Gc |Fn Wc |Fc Gd Wd |Fd |");
}

// d is used again at once, c behind both visits of d, 80 elements: both stay at the turn within 81
// elements; n, behind 140, does not.
TEST(EagerPolicyTest, WhatIsUsedAgainSoonStays) {
  EXPECT_THAT(TextsOf({0, 0, 1000, 81}),
              testing::ElementsAre("Ga Wa |Fa Gb Wb |Fb Gn Wn |Fn Gc Wc |Gd Wd ||",
                                   "Gd Wd |Fd Gc Wc |Fc Gn Wn |Fn Gb Wb |Fb |Ra "));
}

TEST(EagerPolicyTest, SmallParametersStayForGood) {
  const Graph graph = FourModules();
  const Plan plan = Resolve(EagerSpec({0, 10, 1000, 0}), graph, 2);
  EXPECT_EQ(plan.persistent, (std::vector<ParamId>{ParamId(0), ParamId(2)}));
}

TEST(EagerPolicyTest, WorkloadsAreRight) {
  for (const std::string& name : WorkloadNames()) {
    const Graph graph = WorkloadGraph(name);
    for (const int stage : {1, 2, 3}) {
      PlanSpec spec = EagerSpec({});
      spec.options.stage = stage;
      spec.options.gradient_accumulation_steps = 2;
      const Plan plan = Resolve(spec, graph, 8);
      EXPECT_THAT(FindPlanFaults(plan, graph), testing::IsEmpty()) << name;
      EXPECT_THAT(Verify(Lower(plan, graph, nullptr, {}), graph), testing::IsEmpty()) << name;
    }
  }
}

}  // namespace
}  // namespace dcsim
