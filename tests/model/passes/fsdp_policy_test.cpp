#include "model/passes/fsdp_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/ir/schedule_text.h"
#include "model/passes/fsdp_groups.h"
#include "model/passes/lower.h"
#include "model/passes/multi_tensor_launches.h"
#include "model/passes/resolve.h"
#include "model/passes/verify.h"
#include "tests/support/error_text.h"
#include "tests/support/event_text.h"
#include "tests/support/workloads.h"

namespace dcsim {
namespace {

/// A root with an embedding that the backward does not read, and two layers, the second of which
/// begins with an op without parameters. Of 8 by 2 elements each, the bias of 3.
Graph TwoLayers() {
  return ParseGraphText(R"(
graph layers 1 tokens
param e bfloat16[8,2]
param l.0.w bfloat16[8,2]
param l.0.b bfloat16[3]
param l.1.w bfloat16[8,2]
input x bfloat16[8]
forward
  x0: bfloat16[8] = my::op(x, e) @e
  x1: bfloat16[8] = my::op(x0, l.0.w, l.0.b) @l.0
  n: bfloat16[8] = my::op(x1) @l.1.n
  x2: bfloat16[8] = my::op(n, l.1.w) @l.1
  z: bfloat16[] = my::op(x2)
  loss z
  save x0
  save x1
backward of 0
  tangent t: bfloat16[] of z
  g2: bfloat16[8] = my::op(t, l.1.w) @l.1
  gw1: bfloat16[8,2] = my::op(t, x1) @l.1
  g1: bfloat16[8] = my::op(g2, l.0.w) @l.0
  gw0: bfloat16[8,2] = my::op(g2, x0) @l.0
  gb0: bfloat16[3] = my::op(g2) @l.0
  ge: bfloat16[8,2] = my::op(g1) @e
  gradient e = ge
  gradient l.0.w = gw0
  gradient l.0.b = gb0
  gradient l.1.w = gw1
)");
}

PlanSpec FsdpSpec() {
  PlanSpec spec;
  spec.policy = "fsdp";
  spec.options.sharding = Sharding::kFsdp2;
  return spec;
}

std::vector<std::string> TextsOf(const PlanSpec& spec) {
  const Graph graph = TwoLayers();
  const Plan plan = Resolve(spec, graph, 2);
  EXPECT_THAT(FindPlanFaults(plan, graph), testing::IsEmpty());
  EXPECT_THAT(Verify(Lower(plan, graph, nullptr, {}), graph), testing::IsEmpty());
  return {EventText(graph, plan.graphs[0]), EventText(graph, plan.graphs[1])};
}

Schedule LowerSpec(const PlanSpec& spec, int ranks) {
  const Graph graph = TwoLayers();
  return Lower(Resolve(spec, graph, ranks), graph, nullptr, {});
}

std::string KindsOf(const Schedule& schedule, StreamRole stream) {
  std::string kinds;
  for (const Task& task : schedule.tasks()) {
    if (task.stream == static_cast<std::uint8_t>(stream) && task.kind != TaskKind::kWait) {
      kinds += (kinds.empty() ? "" : ", ") + std::string(TaskKindName(task.kind));
    }
  }
  return kinds;
}

std::int64_t SumOf(const Schedule& schedule, BufferClass buffer_class) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : schedule.buffers()) {
    bytes += buffer.buffer_class == buffer_class ? buffer.bytes.count() : 0;
  }
  return bytes;
}

// _fsdp_state.py: the root is gathered first and stays; a layer's hooks stand around its ops, those
// without parameters, too. The root's pre-backward prefetches the layer that ran last, each layer's
// the one before it; post-backward reshards and reduces; the root's comes last.
TEST(FsdpPolicyTest, HooksStandAroundLayers) {
  EXPECT_THAT(TextsOf(FsdpSpec()),
              testing::ElementsAre(
                  "Ge We |Gl.0.w,l.0.b Wl.0.w,l.0.b |Fl.0.w,l.0.b Gl.1.w Wl.1.w ||Fl.1.w |",
                  "Ge We Gl.1.w Wl.1.w Gl.0.w,l.0.b ||Fl.1.w Rl.1.w Wl.0.w,l.0.b |||Fl.0.w,l.0.b "
                  "Rl.0.w,l.0.b |Fe Re "));
}

TEST(FsdpPolicyTest, WithoutReshardingTheForwardLetsNothingGo) {
  PlanSpec spec = FsdpSpec();
  spec.fsdp_groups.reshard_after_forward = ReshardAfterForward::kNever;
  EXPECT_EQ(TextsOf(spec)[0], "Ge We |Gl.0.w,l.0.b Wl.0.w,l.0.b |Gl.1.w Wl.1.w |||");
}

// Told so, the root lets go, too, and its pre-backward gathers it again.
TEST(FsdpPolicyTest, ReshardingAllTakesTheRootAlong) {
  PlanSpec spec = FsdpSpec();
  spec.fsdp_groups.reshard_after_forward = ReshardAfterForward::kAll;
  EXPECT_EQ(TextsOf(spec)[0],
            "Ge We |Gl.0.w,l.0.b Wl.0.w,l.0.b |Fl.0.w,l.0.b Gl.1.w Wl.1.w ||Fl.1.w |Fe ");
  EXPECT_EQ(KindsOf(LowerSpec(spec, 2), StreamRole::kGather),
            "all-gather, all-gather, all-gather, all-gather, all-gather, all-gather");
}

TEST(FsdpPolicyTest, WrapNamesTheModules) {
  PlanSpec spec = FsdpSpec();
  spec.fsdp_groups.wrap = {"l.1"};
  EXPECT_EQ(TextsOf(spec)[0], "Ge,l.0.w,l.0.b We,l.0.w,l.0.b ||Gl.1.w Wl.1.w ||Fl.1.w |");
  spec.fsdp_groups.wrap = {"l.*"};
  EXPECT_EQ(TextsOf(spec), TextsOf(FsdpSpec()));
  spec.fsdp_groups.wrap = {"m.*"};
  EXPECT_EQ(
      ErrorText([&] { Resolve(spec, TwoLayers(), 2); }),
      "plan: wrap: no module with parameters is called 'm.*', did you mean 'l.0'?; '*' stands "
      "for one part between dots");
}

std::vector<std::string> GroupsOf(const std::vector<std::string>& params) {
  std::string text = "graph names 1 tokens\n";
  for (const std::string& param : params) {
    text += "param " + param + " bfloat16[1]\n";
  }
  const Graph graph = ParseGraphText(
      text + "input x bfloat16[1]\nforward\n  y: bfloat16[] = my::op(x)\n  loss y\n");
  std::vector<std::string> modules;
  for (const ParamGroup& group : FindParamGroups(graph, {})) {
    modules.push_back(group.module + " " + std::to_string(group.params.size()));
  }
  return modules;
}

// Every outermost list of modules: an encoder's and a decoder's layers, not the experts in them,
// and not a list of one.
TEST(FsdpPolicyTest, BlocksAreChildrenOfOutermostLists) {
  EXPECT_THAT(
      GroupsOf({"e.block.0.a", "e.block.1.a", "d.block.0.a", "d.block.1.a", "head"}),
      testing::ElementsAre("e.block.0 1", "e.block.1 1", "d.block.0 1", "d.block.1 1", " 1"));
  EXPECT_THAT(GroupsOf({"l.0.x.0.a", "l.0.x.1.a", "l.0.x.2.a", "l.1.x.0.a"}),
              testing::ElementsAre("l.0 3", "l.1 1"));
  EXPECT_THAT(GroupsOf({"m.0.l.0.a", "m.0.l.1.a"}), testing::ElementsAre("m.0.l.0 1", "m.0.l.1 1"));
  EXPECT_THAT(GroupsOf({"a", "b"}), testing::ElementsAre(" 2"));
}

// Chunks of 65,536 elements, 320 a launch; two lists take 64 tensors, four 36.
TEST(FsdpPolicyTest, MultiTensorLaunches) {
  const auto launches = [](std::vector<std::int64_t> sizes, std::size_t lists) {
    return MultiTensorLaunches(sizes, lists);
  };
  EXPECT_EQ(launches({1}, 2), 1);
  EXPECT_EQ(launches({std::int64_t{320} * 65536}, 2), 1);
  EXPECT_EQ(launches({std::int64_t{320} * 65536, 1}, 2), 2);
  EXPECT_EQ(launches({std::int64_t{320} * 65536 + 1}, 2), 2);
  EXPECT_EQ(launches(std::vector<std::int64_t>(64, 1), 2), 1);
  EXPECT_EQ(launches(std::vector<std::int64_t>(65, 1), 2), 2);
  EXPECT_EQ(launches(std::vector<std::int64_t>(72, 1), 4), 2);
  EXPECT_EQ(launches({65'667'072, 512}, 2), 4);  // llama-3.2-1b's root on 4 ranks, as traced
}

// By hand, two ranks. Shards: 8 elements a matrix, 2 of the bias of 3 (padded), 4 bytes each;
// moments twice as much, and a count of 4 bytes a parameter.
TEST(FsdpPolicyTest, ShardsAreFloat32AndCutByRows) {
  const Schedule schedule = LowerSpec(FsdpSpec(), 2);
  EXPECT_EQ(SumOf(schedule, BufferClass::kParameter), (3 * 8 + 2) * 4);
  EXPECT_EQ(SumOf(schedule, BufferClass::kOptimizerState), 2 * (3 * 8 + 2) * 4 + 4 * 4);
}

// The forward gathers three groups, the backward the two that were let go. What ranks gather into
// and the whole parameters have 2 bytes an element: root and second layer 16 elements, first 16 and
// 4; what a rank casts first is half of it.
TEST(FsdpPolicyTest, GroupsAreCopiedInGatheredAndCopiedOut) {
  const Schedule schedule = LowerSpec(FsdpSpec(), 2);
  EXPECT_EQ(KindsOf(schedule, StreamRole::kGather),
            "all-gather, all-gather, all-gather, all-gather, all-gather");
  EXPECT_EQ(SumOf(schedule, BufferClass::kGatheredParameter), 2 * (16 + 2 * (16 + 20)));
  EXPECT_EQ(SumOf(schedule, BufferClass::kTemporary), 3 * (16 + 2 * (16 + 20)));
  EXPECT_EQ(KindsOf(schedule, StreamRole::kReduce),
            "reduce, cast-bucket, reduce, cast-bucket, reduce, cast-bucket");
  // Reduced: 8, 10 and 8 elements in 2 bytes, then in 4.
  EXPECT_EQ(SumOf(schedule, BufferClass::kGradientPartition), 26 * (2 + 4));
  EXPECT_EQ(SumOf(schedule, BufferClass::kReduceBucket), 52 * 2);
}

TEST(FsdpPolicyTest, ShardsInTheirOwnDtypeAreNotCast) {
  PlanSpec spec = FsdpSpec();
  spec.options.training.master = DType::kBFloat16;
  spec.options.training.states = DType::kBFloat16;
  const Schedule schedule = LowerSpec(spec, 2);
  EXPECT_EQ(KindsOf(schedule, StreamRole::kReduce), "reduce, reduce, reduce");
  EXPECT_EQ(SumOf(schedule, BufferClass::kTemporary), 2 * (16 + 2 * (16 + 20)));
  EXPECT_EQ(SumOf(schedule, BufferClass::kParameter), 26 * 2);
}

TEST(FsdpPolicyTest, GradientsAreReducedInTheDtypeAsked) {
  PlanSpec spec = FsdpSpec();
  spec.options.training.reduction = DType::kFloat32;
  const Schedule schedule = LowerSpec(spec, 2);
  EXPECT_EQ(KindsOf(schedule, StreamRole::kReduce), "reduce, reduce, reduce");
  EXPECT_EQ(SumOf(schedule, BufferClass::kReduceBucket), 52 * 4);
}

// On one rank nothing is gathered or reduced: each parameter is cast and copied.
TEST(FsdpPolicyTest, OneRankCopies) {
  const Schedule schedule = LowerSpec(FsdpSpec(), 1);
  EXPECT_EQ(KindsOf(schedule, StreamRole::kGather), "");
  EXPECT_EQ(KindsOf(schedule, StreamRole::kCopy), "");
  EXPECT_THAT(KindsOf(schedule, StreamRole::kCompute),
              testing::StartsWith("gather-copy-in, gather-copy-out, compute, gather-copy-in, "
                                  "gather-copy-out, gather-copy-in, gather-copy-out, compute"));
  EXPECT_EQ(KindsOf(schedule, StreamRole::kReduce),
            "reduce, cast-bucket, reduce, cast-bucket, reduce, cast-bucket");
}

// A second micro-step adds each parameter's gradient to those of the first.
TEST(FsdpPolicyTest, MicroStepsAddToReducedGradients) {
  PlanSpec spec = FsdpSpec();
  spec.options.gradient_accumulation_steps = 2;
  const Schedule schedule = LowerSpec(spec, 2);
  EXPECT_THAT(KindsOf(schedule, StreamRole::kReduce),
              testing::EndsWith("reduce, cast-bucket, store-reduced, reduce, cast-bucket, "
                                "store-reduced, reduce, cast-bucket, store-reduced"));
}

TEST(FsdpPolicyTest, WhatZeroHasIsRefused) {
  const Graph graph = TwoLayers();
  PlanSpec spec = FsdpSpec();
  spec.options.double_buffer = false;
  EXPECT_EQ(ErrorText([&] { Resolve(spec, graph, 2); }),
            "plan: double_buffer: fsdp does not have it");
  spec = FsdpSpec();
  spec.options.stage = 2;
  EXPECT_EQ(ErrorText([&] { Resolve(spec, graph, 2); }),
            "plan: stage: fsdp cuts parameters, gradients and optimizer states: 3");
  spec = PlanSpec();
  spec.fsdp_groups.reshard_after_forward = ReshardAfterForward::kNever;
  EXPECT_EQ(ErrorText([&] { Resolve(spec, graph, 2); }),
            "plan: reshard_after_forward and wrap are for fsdp, not plain-1");
}

/// FSDP2's groups have one dtype.
bool HasOneDType(const Graph& graph) {
  return std::all_of(graph.params.begin(), graph.params.end(), [&](const Param& param) {
    return graph.value(param.value).dtype == graph.value(graph.params.front().value).dtype;
  });
}

TEST(FsdpPolicyTest, WorkloadsAreRight) {
  for (const std::string& name : WorkloadNames()) {
    const Graph graph = WorkloadGraph(name);
    PlanSpec spec = FsdpSpec();
    spec.options.gradient_accumulation_steps = 2;
    if (!HasOneDType(graph)) {
      continue;
    }
    for (const auto& [reshard, ranks] :
         {std::pair(ReshardAfterForward::kNever, 1), std::pair(ReshardAfterForward::kAll, 8)}) {
      spec.fsdp_groups.reshard_after_forward = reshard;
      const Plan plan = Resolve(spec, graph, ranks);
      EXPECT_THAT(FindPlanFaults(plan, graph), testing::IsEmpty()) << name;
      EXPECT_THAT(Verify(Lower(plan, graph, nullptr, {}), graph), testing::IsEmpty()) << name;
    }
  }
}

}  // namespace
}  // namespace dcsim
