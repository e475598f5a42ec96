#include "model/passes/gather_passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/passes/resolve.h"
#include "tests/support/error_text.h"

namespace dcsim {
namespace {

/// A chain of five ops that use a, b, c and d: 4, 8, 8 and 16 bytes whole, on one rank or two.
Graph Chain() {
  return ParseGraphText(R"(
graph chain 1 tokens
param a bfloat16[2]
param b bfloat16[4]
param c bfloat16[4]
param d bfloat16[8]
input x bfloat16[2]
forward
  p: bfloat16[2] = my::linear(x, a)
  q: bfloat16[2] = my::relu(p)
  r: bfloat16[2] = my::linear(q, b)
  s: bfloat16[2] = my::linear(r, c)
  t: bfloat16[2] = my::linear(s, d)
  l: bfloat16[] = my::loss(t)
  loss l
)");
}

/// Every op takes 10 us; an all-gather 10 us and 1 us a byte.
PolicyInputs Machine() {
  PolicyInputs inputs;
  inputs.op_times.assign(Chain().ops.size(), Duration::FromUs(10));
  inputs.gather_times = {{Bytes(1), Duration::FromUs(11)}, {Bytes(101), Duration::FromUs(111)}};
  return inputs;
}

Plan AtUse() {
  PlanSpec spec;
  return Resolve(spec, Chain(), 2);
}

/// "0 a, 2 b c": positions and parameters of the forward's launches.
std::string Launches(const Plan& plan) {
  std::string text;
  const auto add = [&text](std::size_t position, const std::vector<ParamId>& params) {
    text += (text.empty() ? "" : ", ") + std::to_string(position);
    for (const ParamId id : params) {
      text += std::string(" ") + "abcd"[id.index()];
    }
  };
  for (const GatherGroup& group : plan.graphs[0].gathers) {
    add(group.position, group.params);
  }
  for (const GraphEvent& event : plan.graphs[0].events) {
    if (event.kind == GraphEventKind::kGather) {
      add(event.position, event.params);
    }
  }
  return text;
}

TEST(GatherPassesTest, AtUseIsTheStart) {
  EXPECT_EQ(Launches(AtUse()), "0 a, 2 b, 3 c, 4 d");
}

TEST(GatherAheadTest, LaunchesMoveToTheUseOfEarlierOnes) {
  Plan plan = AtUse();
  GatherAhead(Chain(), 1, plan);
  EXPECT_EQ(Launches(plan), "0 a, 0 b, 2 c, 3 d");
  GatherAhead(Chain(), 2, plan);
  EXPECT_EQ(Launches(plan), "0 a, 0 b, 0 c, 2 d");
}

TEST(GatherAheadTest, FusedLaunchesMoveAsOne) {
  Plan plan = AtUse();
  FuseGathers(Chain(), 2, Bytes(16), plan);
  ASSERT_EQ(Launches(plan), "0 a b, 3 c, 4 d");
  GatherAhead(Chain(), 1, plan);
  EXPECT_EQ(Launches(plan), "0 a b, 0 c, 3 d");
}

// a and b have 12 bytes, b and c 16, c and d 24.
TEST(FuseGathersTest, NeighboursJoinUpToTheLimit) {
  const auto fused = [](Bytes most) {
    Plan plan = AtUse();
    FuseGathers(Chain(), 2, most, plan);
    return Launches(plan);
  };
  EXPECT_EQ(fused(Bytes(11)), "0 a, 2 b, 3 c, 4 d");
  EXPECT_EQ(fused(Bytes(12)), "0 a b, 3 c, 4 d");
  EXPECT_EQ(fused(Bytes(20)), "0 a b c, 4 d");
  EXPECT_EQ(fused(Bytes(36)), "0 a b c d");
}

// Padding counts: on three ranks c takes 6 elements, 12 bytes.
TEST(FuseGathersTest, PaddedBytesCount) {
  Plan plan = Resolve(PlanSpec(), Chain(), 3);
  FuseGathers(Chain(), 3, Bytes(17), plan);  // a 6, b 12, c 12, d 18
  EXPECT_EQ(Launches(plan), "0 a, 2 b, 3 c, 4 d");
  FuseGathers(Chain(), 3, Bytes(18), plan);
  EXPECT_EQ(Launches(plan), "0 a b, 3 c, 4 d");
}

// Ops start at 0, 10, … 50 us. Gathers take 14, 18, 18 and 26 us. d, used at 40, has to start by
// 14: before op 1, which starts at 10. c, used at 30, has to end by then, at 14: it starts by -4,
// as the graph starts; so do b and a.
TEST(OverlapGathersTest, LaunchesStartAsLateAsTheirTimeAllows) {
  Plan plan = AtUse();
  OverlapGathers(Chain(), 2, Machine(), plan);
  EXPECT_EQ(Launches(plan), "0 a, 0 b, 0 c, 1 d");
}

// With ops of 30 us (starts 0, 30, 60, 90, 120): d by 94, before op 3 at 90; c, used at 90, by 72,
// before op 2; b, used at 60, by 42, before op 1; a at 0.
TEST(OverlapGathersTest, SlowOpsHideEachGather) {
  Plan plan = AtUse();
  PolicyInputs inputs = Machine();
  inputs.op_times.assign(inputs.op_times.size(), Duration::FromUs(30));
  OverlapGathers(Chain(), 2, inputs, plan);
  EXPECT_EQ(Launches(plan), "0 a, 1 b, 2 c, 3 d");
}

TEST(OverlapGathersTest, WithoutMeasurementsNothingMoves) {
  Plan plan = AtUse();
  OverlapGathers(Chain(), 2, {}, plan);
  EXPECT_EQ(plan, AtUse());
}

// On a plan of events, gathers move and join; waits and releases stay where they were.
TEST(GatherPassesTest, EventsKeepEverythingButGathers) {
  PlanSpec spec;
  spec.policy = "deepcompile-0.19.8";
  spec.passes = {"zero3_compile"};
  const Plan before = Resolve(spec, Chain(), 2);
  ASSERT_EQ(Launches(before), "0 a, 1 b, 3 c, 4 d");  // waits stand at 0, 2, 3 and 4
  Plan plan = before;
  GatherAhead(Chain(), 1, plan);
  FuseGathers(Chain(), 2, Bytes(12), plan);
  EXPECT_EQ(Launches(plan), "0 a b, 2 c, 3 d");
  EXPECT_THAT(FindPlanFaults(plan, Chain()), testing::IsEmpty());
  const auto others = [](const Plan& of) {
    std::vector<GraphEvent> events;
    for (const GraphEvent& event : of.graphs[0].events) {
      if (event.kind != GraphEventKind::kGather) {
        events.push_back(event);
      }
    }
    return events;
  };
  EXPECT_EQ(others(plan), others(before));
}

TEST(KeepParametersTest, PatternsChooseAndUnknownOnesAreErrors) {
  Plan plan = AtUse();
  KeepGathered keep;
  keep.patterns = {"b", "d"};
  KeepParameters(Chain(), keep, plan);
  EXPECT_EQ(plan.persistent, (std::vector<ParamId>{ParamId(1), ParamId(3)}));
  keep.patterns = {"e"};
  EXPECT_THAT(ErrorText([&] { KeepParameters(Chain(), keep, plan); }),
              testing::StartsWith("keep_gathered: no parameter matches 'e'"));
}

}  // namespace
}  // namespace dcsim
