#include "tools/common/deepspeed_launches.h"

#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/ir/plan_options.h"
#include "model/passes/resolve.h"
#include "tests/support/error_text.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

/// Plain ZeRO-3 with what DeepSpeed always does.
PlanSpec DeepSpeedSpec() {
  PlanSpec spec = TinySpec(3);
  spec.options.release = ReleaseMode::kRecordStream;
  spec.options.buffer_lifetime = BufferLifetime::kPr8036;
  return spec;
}

Result Predicted() {
  Result result;
  result.step_time = Duration::FromNs(1500);
  result.peak_reserved = Bytes(4096);
  result.cluster = {{"name", "pair"}, {"gpu", {{"name", "Some GPU"}}}};
  return result;
}

Json Launches(const Plan& plan, const Graph& graph) {
  return PrintDeepSpeedLaunches(plan, graph, Predicted());
}

TEST(DeepSpeedLaunchesTest, GathersAtUseStandBeforeFirstUses) {
  const Graph graph = TwoLayers();
  const Json document = Launches(Resolve(DeepSpeedSpec(), graph, 2), graph);
  const Json forward = {
      {"direction", "forward"},
      {"first_uses", {"w1", "w2"}},
      {"launches",
       {{{"before", nullptr}, {"params", {"w1"}}}, {{"before", "w2"}, {"params", {"w2"}}}}}};
  const Json backward = {{"direction", "backward"},
                         {"first_uses", Json::array({"w2"})},
                         {"launches", Json::array({{{"before", "w2"}, {"params", {"w2"}}}})}};
  EXPECT_EQ(document.at("graphs"), Json::array({forward, backward}));
  EXPECT_EQ(document.at("ranks"), 2);
  EXPECT_EQ(document.at("persistent"), Json::array());
  EXPECT_EQ(document.at("settings").at("reduce_bucket_size"), 1000);
  EXPECT_EQ(document.at("predicted").at("step_time_ns"), 1500);
  EXPECT_EQ(document.at("cluster").at("gpu"), "Some GPU");
}

// Kept, it is launched in the first graph that uses it.
TEST(DeepSpeedLaunchesTest, KeptParametersAreLaunchedOnce) {
  const Graph graph = TwoLayers();
  Plan plan = Resolve(DeepSpeedSpec(), graph, 2);
  plan.persistent = {ParamId(1)};
  const Json document = Launches(plan, graph);
  EXPECT_EQ(document.at("persistent"), Json::array({"w2"}));
  EXPECT_EQ(document.at("graphs").at(0).at("launches").size(), 2U);
  EXPECT_EQ(document.at("graphs").at(1).at("launches"), Json::array());
}

// The view of w runs nothing: the launch that a plan puts before it stands before the product.
TEST(DeepSpeedLaunchesTest, ViewsAreNoFirstUses) {
  const Graph graph = ParseGraphText(R"(
graph views 2 tokens
param v bfloat16[4]
param w bfloat16[4,4]
input x bfloat16[2,4]
forward
  a: bfloat16[2,4] = aten::add(x, v)
  b: bfloat16[4,4] views w = aten::t(w)
  c: bfloat16[2,4] = aten::relu(a)
  d: bfloat16[2,4] = aten::mm(c, b)
  l: bfloat16[] = aten::sum(d)
  loss l
)");
  Plan plan = Resolve(DeepSpeedSpec(), graph, 2);
  const Json first = Launches(plan, graph).at("graphs").at(0);
  EXPECT_EQ(first.at("first_uses"), Json::array({"v", "w"}));
  EXPECT_EQ(first.at("launches").at(1).at("before"), "w");
  plan.graphs[0].gathers[1].position = 2;  // before relu, which uses no parameter
  const std::string text = ErrorText([&] { Launches(plan, graph); });
  EXPECT_NE(text.find("graph 0, the launch of w before op 2"), std::string::npos) << text;
}

struct RefusedCase {
  std::string key;
  void (*change)(Plan& plan);
};

class RefusedTest : public testing::TestWithParam<RefusedCase> {};

TEST_P(RefusedTest, IsNamed) {
  const Graph graph = TwoLayers();
  Plan plan = Resolve(DeepSpeedSpec(), graph, 2);
  GetParam().change(plan);
  const std::string text = ErrorText([&] { RequireDeepSpeedPlan(plan, graph); });
  EXPECT_NE(text.find(GetParam().key + ": "), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(
    DeepSpeedLaunchesTest,
    RefusedTest,
    testing::Values(
        RefusedCase{"stage", [](Plan& plan) { plan.options.stage = 2; }},
        RefusedCase{"gather_engine",
                    [](Plan& plan) { plan.options.gather_engine = Engine::kCopyEngine; }},
        RefusedCase{"communicators", [](Plan& plan) { plan.options.communicators = 2; }},
        RefusedCase{"release",
                    [](Plan& plan) { plan.options.release = ReleaseMode::kEventOrdered; }},
        RefusedCase{"buffer_lifetime",
                    [](Plan& plan) { plan.options.buffer_lifetime = BufferLifetime::kStep; }},
        RefusedCase{"gradient_buckets",
                    [](Plan& plan) { plan.options.gradient_buckets = GradientBuckets::kEager; }},
        RefusedCase{
            "gradient_reduction",
            [](Plan& plan) { plan.options.gradient_reduction = GradientReduction::kCoalesced; }},
        RefusedCase{"align_tensors", [](Plan& plan) { plan.options.align_tensors = true; }},
        RefusedCase{"sync_before_reduce",
                    [](Plan& plan) { plan.options.synchronize.before_reduce = true; }},
        RefusedCase{
            "allocator",
            [](Plan& plan) { plan.options.allocator = AllocatorMode::kExpandableSegments; }},
        RefusedCase{"offload_parameters",
                    [](Plan& plan) { plan.options.offload_parameters = true; }},
        RefusedCase{
            "order",
            [](Plan& plan) { std::swap(plan.graphs[1].order[0], plan.graphs[1].order[1]); }},
        RefusedCase{"events",
                    [](Plan& plan) {
                      plan.graphs[0].events.push_back({GraphEventKind::kWait, 0, {ParamId(0)}});
                    }},
        RefusedCase{"state_moves",
                    [](Plan& plan) {
                      plan.graphs[0].state_moves.push_back({StateMoveKind::kSynchronize, 0, {}});
                    }}),
    [](const auto& each) { return each.param.key; });

TEST(DeepSpeedLaunchesTest, SpacesAreHeldAgainstTheSame) {
  const Graph graph = TwoLayers();
  SearchSpace space;
  space.options = {DeepSpeedSpec().options, DeepSpeedSpec().options};
  RequireDeepSpeedSpace(space, graph, "mine.yaml");
  space.options[1].communicators = 2;
  const std::string text = ErrorText([&] { RequireDeepSpeedSpace(space, graph, "mine.yaml"); });
  EXPECT_NE(text.find("mine.yaml"), std::string::npos) << text;
  EXPECT_NE(text.find("communicators: 2"), std::string::npos) << text;
}

}  // namespace
}  // namespace dcsim
