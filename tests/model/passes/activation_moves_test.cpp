// DeepCompile's activation passes as parts of a plan.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "model/passes/verify.h"
#include "tests/support/workloads.h"

namespace dcsim {
namespace {

/// Activations of 2048 * 2048 bfloat16 numbers, 8 MiB each. `a` is the result of an op that reads a
/// parameter, whose release hides its shape from DeepSpeed; `b` may leave.
Graph OneLargeActivation() {
  return ParseGraphText(R"(
graph one-large-activation 2 tokens
param w bfloat16[2048,2048]
input x bfloat16[2048,2048]
forward
  a: bfloat16[2048,2048] = aten::mm(x, w)
  b: bfloat16[2048,2048] = aten::relu(a)
  c: bfloat16[2048,2048] = aten::mul(b, a)
  l: bfloat16[] = aten::sum(c)
  loss l
  save a
  save b
backward of 0
  tangent t: bfloat16[] of l
  g1: bfloat16[2048,2048] = aten::fill(t)
  g2: bfloat16[2048,2048] = aten::neg(g1)
  g3: bfloat16[2048,2048] = aten::neg(g2)
  g4: bfloat16[2048,2048] = aten::mul(g3, a)
  g5: bfloat16[2048,2048] = aten::mul(g4, b)
  gw: bfloat16[2048,2048] = aten::mm(x, g5)
  gradient w = gw
)");
}

/// Ops take 1 ms each, and 8 MiB come back at 4 GB/s in 2.1 ms.
PolicyInputs Machine(const Graph& graph, Bytes memory) {
  PolicyInputs inputs;
  inputs.op_times.assign(graph.ops.size(), Duration::FromNs(1'000'000));
  inputs.device_memory = memory;
  inputs.reload_rate = BytesPerSecond(4'000'000'000);
  return inputs;
}

PlanSpec SpecOf(const std::string& policy, std::vector<std::string> passes) {
  PlanSpec spec;
  spec.policy = policy;
  spec.options.stage = 3;
  spec.options.reduce_bucket = 1000;
  spec.passes = std::move(passes);
  return spec;
}

/// "out b 3": what happens to which activation before which position.
std::vector<std::string> MovesOf(const Plan& plan, const Graph& graph) {
  std::vector<std::string> moves;
  for (const GraphPlan& decisions : plan.graphs) {
    for (const GraphEvent& event : decisions.events) {
      for (const ValueId value : event.values) {
        const bool out = event.kind == GraphEventKind::kOffloadActivation;
        const bool back = event.kind == GraphEventKind::kReloadActivation;
        moves.push_back((out    ? "out "
                         : back ? "back "
                                : "wait ") +
                        graph.value(value).name + " " + std::to_string(event.position));
      }
    }
  }
  return moves;
}

std::vector<std::string> FloorPasses() {
  return {"zero3_compile", "offload_activation_floor"};
}
std::vector<std::string> PlannedPasses() {
  return {"zero3_compile", "offload_activation_floor", "offload_activation"};
}

// `b` leaves behind mul, at 3. In the backward it is first used at 4; 2.1 ms before that is the
// third op ahead, at 1.
TEST(ActivationMovesTest, TheCopyBackStartsAsFarAheadAsItTakes) {
  const Graph graph = OneLargeActivation();
  for (const char* policy : {"deepcompile-0.19.6", "deepcompile-0.19.8"}) {
    const Plan plan =
        Resolve(SpecOf(policy, FloorPasses()), graph, 2, Machine(graph, Bytes::GiB(1)));
    EXPECT_THAT(MovesOf(plan, graph), testing::ElementsAre("out b 3", "back b 1", "wait b 4"));
    EXPECT_THAT(FindPlanFaults(plan, graph), testing::IsEmpty());
  }
}

TEST(ActivationMovesTest, WithoutAProfileItStartsRightBeforeTheFirstUse) {
  const Graph graph = OneLargeActivation();
  const Plan plan = Resolve(SpecOf("deepcompile-0.19.8", PlannedPasses()), graph, 2);
  EXPECT_THAT(MovesOf(plan, graph), testing::ElementsAre("out b 3", "back b 4", "wait b 4"));
}

// Nothing fits into 1 MiB; in 1 GiB there is room for 8 MiB.
TEST(ActivationMovesTest, ThePlannerKeepsWhatFits) {
  const Graph graph = OneLargeActivation();
  const auto moves = [&](Bytes memory) {
    return MovesOf(
        Resolve(SpecOf("deepcompile-0.19.8", PlannedPasses()), graph, 2, Machine(graph, memory)),
        graph);
  };
  EXPECT_THAT(moves(Bytes::MiB(1)), testing::ElementsAre("out b 3", "back b 4", "wait b 4"));
  EXPECT_THAT(moves(Bytes::GiB(1)), testing::IsEmpty());
}

TEST(ActivationMovesTest, TheKeyAsksForBothPasses) {
  const Graph graph = OneLargeActivation();
  PlanSpec key = SpecOf("deepcompile-0.19.8", {});
  key.passes.reset();
  key.offload_activation = true;
  const PolicyInputs inputs = Machine(graph, Bytes::MiB(1));
  EXPECT_EQ(Resolve(key, graph, 2, inputs),
            Resolve(SpecOf("deepcompile-0.19.8", PlannedPasses()), graph, 2, inputs));
}

// Of the 97 activations that DeepSpeed moves (activation_oracle_test) those leave that a backward
// op reads and nothing else holds.
TEST(ActivationMovesTest, AWholeModelsPlanIsRight) {
  const Graph graph = WorkloadGraph("llama-3.2-1b");
  const Plan plan = Resolve(SpecOf("deepcompile-0.19.8", FloorPasses()), graph, 4,
                            Machine(graph, Bytes::GiB(141)));
  EXPECT_GE(MovesOf(plan, graph).size(), 3U * 60);
  ASSERT_THAT(FindPlanFaults(plan, graph), testing::IsEmpty());
  const Schedule schedule = Lower(plan, graph, nullptr, {});
  EXPECT_THAT(Verify(schedule, graph), testing::IsEmpty());
  EXPECT_GT(schedule.host_pinned(), Bytes::GiB(1));
}

}  // namespace
}  // namespace dcsim
