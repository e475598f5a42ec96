#include "model/passes/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "tests/support/error_text.h"
#include "tests/support/row_name.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

TEST(ResolveTest, KnowsItsPolicies) {
  EXPECT_THAT(PolicyNames(),
              testing::ElementsAre("plain-1", "deepcompile-0.17.1", "deepcompile-0.19.6",
                                   "deepcompile-0.19.8", "deepspeed-eager", "fsdp"));
}

TEST(ResolveTest, UnknownPolicyGetsTheNearestOne) {
  PlanSpec spec;
  spec.policy = "plain1";
  EXPECT_EQ(ErrorText([&] { Resolve(spec, TwoLayers(), 2); }),
            "plan: policy: expected plain-1, deepcompile-0.17.1, deepcompile-0.19.6, "
            "deepcompile-0.19.8, deepspeed-eager or fsdp, found 'plain1', did you mean 'plain-1'?");
  spec.policy = "deepcompile-0.18.6";
  EXPECT_THAT(ErrorText([&] { Resolve(spec, TwoLayers(), 2); }),
              testing::EndsWith("did you mean 'deepcompile-0.19.6'?"));
}

TEST(ResolveTest, SameQuestionGetsTheSamePlan) {
  PlanSpec spec;
  spec.gather_ahead = 1;
  EXPECT_EQ(Resolve(spec, TwoLayers(), 2), Resolve(spec, TwoLayers(), 2));
}

PlanSpec OneLaunchSpec(int stage, ReduceCollective collective) {
  PlanSpec spec;
  spec.options.stage = stage;
  spec.options.reduce_collective = collective;
  spec.options.flush_collectives = FlushCollectives::kOnePerBucket;
  return spec;
}

// A rank's part of one reduce-scatter over a bucket is a stretch of the bucket, not its shard of
// each parameter in it.
TEST(ResolveTest, OneReduceScatterABucketIsAnError) {
  const std::string start = "plan: flush_collectives: one_per_bucket is for all_reduce";
  for (const PlanSpec& spec : {OneLaunchSpec(1, ReduceCollective::kReduceScatter),
                               OneLaunchSpec(2, ReduceCollective::kReduceScatter),
                               OneLaunchSpec(3, ReduceCollective::kAllReduce)}) {
    EXPECT_THAT(ErrorText([&] { Resolve(spec, TwoLayers(), 2); }), testing::StartsWith(start));
  }
  EXPECT_NO_THROW(Resolve(OneLaunchSpec(2, ReduceCollective::kAllReduce), TwoLayers(), 2));
}

TEST(ResolveTest, SavedPlansAreCheckedForTheSameContradiction) {
  Plan plan = Resolve(OneLaunchSpec(2, ReduceCollective::kAllReduce), TwoLayers(), 2);
  EXPECT_THAT(FindPlanFaults(plan, TwoLayers()), testing::IsEmpty());
  plan.options.reduce_collective = ReduceCollective::kReduceScatter;
  EXPECT_THAT(FindPlanFaults(plan, TwoLayers()), testing::SizeIs(1));
}

struct Contradiction {
  const char* name;
  void (*change)(PlanSpec& spec);
};

class ContradictionTest : public testing::TestWithParam<Contradiction> {};

TEST_P(ContradictionTest, IsAnErrorBelowStage3) {
  for (const int stage : {1, 2}) {
    PlanSpec spec;
    spec.options.stage = stage;
    GetParam().change(spec);
    EXPECT_EQ(ErrorText([&] { Resolve(spec, TwoLayers(), 2); }),
              "plan: gather_ahead and keep_gathered are for stage 3; stage " +
                  std::to_string(stage) + " gathers no parameter before its use");
  }
}

TEST_P(ContradictionTest, IsNoneInStage3) {
  PlanSpec spec;
  spec.options.stage = 3;
  GetParam().change(spec);
  EXPECT_NO_THROW(Resolve(spec, TwoLayers(), 2));
}

INSTANTIATE_TEST_SUITE_P(
    Options,
    ContradictionTest,
    testing::Values(Contradiction{"GatherAhead", [](PlanSpec& s) { s.gather_ahead = 1; }},
                    Contradiction{"KeepAll", [](PlanSpec& s) { s.keep_gathered.all = true; }},
                    Contradiction{"KeepSome",
                                  [](PlanSpec& s) { s.keep_gathered.patterns = {"w1"}; }}),
    RowName());

// What only one kind of policy understands.

struct Misuse {
  const char* name;
  void (*change)(PlanSpec& spec);
  const char* message;
};

class MisuseTest : public testing::TestWithParam<Misuse> {};

TEST_P(MisuseTest, IsAnErrorWithItsReason) {
  PlanSpec spec;
  spec.policy = "deepcompile-0.19.8";
  GetParam().change(spec);
  EXPECT_EQ(ErrorText([&] { Resolve(spec, TwoLayers(), 2); }), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Policies,
    MisuseTest,
    testing::Values(
        Misuse{"PlainKeys", [](PlanSpec& s) { s.gather_ahead = 1; },
               "plan: gather_ahead and keep_gathered are for plain-1; deepcompile-0.19.8 decides "
               "both itself"},
        Misuse{"PassesOfPlain",
               [](PlanSpec& s) {
                 s.policy = "plain-1";
                 s.passes = {"zero3_compile"};
               },
               "plan: passes: zero3_compile is for DeepCompile's policies, not plain-1"},
        Misuse{"PassesOfEager",
               [](PlanSpec& s) {
                 s.policy = "deepspeed-eager";
                 s.options.gradient_buckets = GradientBuckets::kEager;
                 s.passes = {"zero3_compile"};
               },
               "plan: passes are for plain-1 and DeepCompile's policies, not deepspeed-eager"},
        Misuse{"GatherTimesOfPlain",
               [](PlanSpec& s) {
                 s.policy = "plain-1";
                 s.gather_times = GatherTimes::kAsMeasured;
               },
               "plan: gather_times is for DeepCompile's policies, not plain-1"},
        Misuse{"GatherTimesBelowStage3",
               [](PlanSpec& s) {
                 s.options.stage = 1;
                 s.gather_times = GatherTimes::kAsMeasured;
               },
               "plan: gather_times is for stage 3; stage 1 gathers no parameter before its use"},
        Misuse{"Coalesced",
               [](PlanSpec& s) { s.options.gradient_reduction = GradientReduction::kCoalesced; },
               "plan: gradient_reduction and gradient_buckets: DeepCompile's graphs reduce in each "
               "backward, in its own buckets; coalesced and eager are for plain-1 and "
               "deepspeed-eager"},
        Misuse{"EagerBucketsOfDeepCompile",
               [](PlanSpec& s) { s.options.gradient_buckets = GradientBuckets::kEager; },
               "plan: gradient_reduction and gradient_buckets: DeepCompile's graphs reduce in each "
               "backward, in its own buckets; coalesced and eager are for plain-1 and "
               "deepspeed-eager"},
        Misuse{"DeepCompileBucketsOfEager", [](PlanSpec& s) { s.policy = "deepspeed-eager"; },
               "plan: gradient_buckets: deepspeed-eager has eager ones"},
        Misuse{"EagerKeys", [](PlanSpec& s) { s.eager_gathers.max_live = 1; },
               "plan: prefetch_bucket, persistence_threshold, max_live and max_reuse_distance are "
               "for deepspeed-eager, not deepcompile-0.19.8"},
        Misuse{"ScatteredGradients", [](PlanSpec& s) { s.options.contiguous_gradients = false; },
               "plan: contiguous_gradients: false is for eager gradient_buckets"},
        Misuse{"OverlapOfDeepCompile", [](PlanSpec& s) { s.options.overlap_comm = true; },
               "plan: overlap_comm is for eager gradient_buckets of stages 1 and 2 with "
               "contiguous_gradients; stage 3's are always reduced on their own stream"},
        Misuse{"FlatByCopies", [](PlanSpec& s) { s.options.flatten = Flatten::kCopy; },
               "plan: flatten: copy is for eager gradient_buckets"},
        Misuse{"Zero2Of0171",
               [](PlanSpec& s) {
                 s.policy = "deepcompile-0.17.1";
                 s.options.stage = 2;
               },
               "plan: stage: DeepCompile of DeepSpeed 0.17.1 knows ZeRO-1 and 3; it leaves ZeRO-2 "
               "to torch.compile"},
        Misuse{"OffloadActivationOf0171",
               [](PlanSpec& s) {
                 s.policy = "deepcompile-0.17.1";
                 s.offload_activation = true;
               },
               "plan: offload_activation_floor: DeepSpeed 0.17.1 has no key for it, and its pass "
               "differs from the one here; deepcompile-0.19.6 and deepcompile-0.19.8 have it"},
        Misuse{"StatesOf0171",
               [](PlanSpec& s) {
                 s.policy = "deepcompile-0.17.1";
                 s.passes = {"zero3_compile", "offload_adam_states_sync"};
               },
               "plan: offload_adam_states_sync: DeepSpeed 0.17.1 has no key for it, and its pass "
               "differs from the one here; deepcompile-0.19.6 and deepcompile-0.19.8 have it"},
        Misuse{"MasterAlone", [](PlanSpec& s) { s.options.training.master = DType::kBFloat16; },
               "plan: master_weights and optimizer_state_dtype: float32 both, or bfloat16 both; "
               "DeepSpeed keeps one in bfloat16 without the other on the host alone"},
        Misuse{"WideAccumulationOfZero1",
               [](PlanSpec& s) {
                 s.options.stage = 1;
                 s.options.training.accumulation = DType::kFloat32;
               },
               "plan: gradient_accumulation_dtype: float32 is for stages 2 and 3; ZeRO-1 with it "
               "is another optimizer of DeepSpeed's (BF16_Optimizer), which is not modelled"},
        Misuse{"WideAccumulationOf0171",
               [](PlanSpec& s) {
                 s.policy = "deepcompile-0.17.1";
                 s.options.training.accumulation = DType::kFloat32;
               },
               "plan: gradient_accumulation_dtype and master_weights: DeepCompile of DeepSpeed "
               "0.17.1 keeps gradients in the parameters' dtype and master weights in float32"},
        Misuse{"ReducedByDeepCompile",
               [](PlanSpec& s) { s.options.training.reduction = DType::kFloat32; },
               "plan: reduce_dtype is for eager gradient_buckets and fsdp; DeepCompile reduces "
               "gradients in their own dtype"},
        Misuse{"PaddedShards", [](PlanSpec& s) { s.options.parameter_alignment = true; },
               "plan: parameter_alignment is for stages 1 and 2 with all_reduce, which cut one "
               "flat tensor; others cut each parameter"},
        Misuse{"PaddedAndAligned",
               [](PlanSpec& s) {
                 s.options.stage = 2;
                 s.options.parameter_alignment = true;
                 s.options.align_tensors = true;
               },
               "plan: parameter_alignment pads parameters in their order, align_tensors puts those "
               "of odd size last; a plan has one of them"},
        Misuse{"PaddedBefore0198",
               [](PlanSpec& s) {
                 s.policy = "deepcompile-0.19.6";
                 s.options.stage = 2;
                 s.options.parameter_alignment = true;
               },
               "plan: parameter_alignment: DeepSpeed has it since 0.19.8, not in "
               "deepcompile-0.19.6"},
        Misuse{"DeepSpeedsSgd",
               [](PlanSpec& s) {
                 s.options.training.algorithm = OptimizerAlgorithm::kSgdMomentum;
                 s.options.optimizer = OptimizerKernels::kDeepSpeedFused;
               },
               "plan: optimizer: deepspeed-fused is for adamw, adam and lion; DeepSpeed runs "
               "torch's sgd-momentum"},
        Misuse{"LionInPasses",
               [](PlanSpec& s) {
                 s.options.training.algorithm = OptimizerAlgorithm::kLion;
                 s.options.optimizer = OptimizerKernels::kForeach;
               },
               "plan: optimizer: lion has one fused kernel, DeepSpeed's; foreach and for_loop are "
               "torch's passes"},
        Misuse{"MomentumInDeepSpeedsPasses",
               [](PlanSpec& s) {
                 s.options.training.algorithm = OptimizerAlgorithm::kSgdMomentum;
                 s.passes = {"zero3_compile", "offload_adam_states_sync"};
               },
               "plan: offload_adam_states_sync: DeepSpeed moves exp_avg, exp_avg_sq and hp_param; "
               "the momentum of sgd-momentum has another name and would stay"},
        Misuse{"EagerEachMicroStep",
               [](PlanSpec& s) {
                 s.policy = "deepspeed-eager";
                 s.options.gradient_buckets = GradientBuckets::kEager;
                 s.options.gradient_reduction = GradientReduction::kEachMicroStep;
               },
               "plan: gradient_reduction: each_micro_step is for DeepCompile's gradient_buckets"},
        Misuse{"EagerReduceScatter",
               [](PlanSpec& s) {
                 s.options.stage = 2;
                 s.options.gradient_buckets = GradientBuckets::kEager;
                 s.options.reduce_collective = ReduceCollective::kReduceScatter;
               },
               "plan: gradient_buckets: eager ones are reduced whole and live for a step; "
               "reduce_scatter, one_per_bucket and buffer_lifetime are for DeepCompile's"}),
    RowName());

// TwoLayers is bfloat16; a float32 model has no bfloat16 master weights.
TEST(ResolveTest, HalfMasterWeightsAreForHalfParameters) {
  PlanSpec spec = TinySpec(2);
  spec.options.training.master = DType::kBFloat16;
  spec.options.training.states = DType::kBFloat16;
  Plan plan = Resolve(spec, TwoLayers(), 2);
  EXPECT_THAT(FindPlanFaults(plan, TwoLayers()), testing::IsEmpty());
  const Graph wide = ParseGraphText(R"(
graph wide 1 tokens
param w float32[4]
forward
  l: float32[] = my::loss(w)
  loss l
backward
  tangent t: float32[] of l
  g: float32[4] = my::grad(t)
  gradient w = g
)");
  const std::string fault =
      "master_weights: bfloat16 is for bfloat16 parameters; this workload trains float32 ones";
  EXPECT_EQ(ErrorText([&] { Resolve(spec, wide, 2); }), "plan: " + fault);
  plan = Resolve(TinySpec(2), wide, 2);
  plan.options.training = spec.options.training;
  EXPECT_THAT(FindPlanFaults(plan, wide), testing::ElementsAre(fault));
}

/// TwoLayers resolved for ZeRO-3: forward ops 0 to 2 (mm, mm, sum), gathers of w1 at 0 and w2 at 1;
/// backward ops 3 to 6 (fill, mm, mm, mm), gather of w2 at 2.
Plan ValidPlan() {
  return Resolve(TinySpec(3), TwoLayers(), 2);
}

TEST(FindPlanFaultsTest, ResolvedPlanHasNone) {
  EXPECT_THAT(FindPlanFaults(ValidPlan(), TwoLayers()), testing::IsEmpty());
}

// gb's product with w2 may come before that with a: neither needs the other.
TEST(FindPlanFaultsTest, OtherOrdersThatKeepDependenciesHaveNone) {
  Plan plan = ValidPlan();
  plan.graphs[1].order = {OpId(3), OpId(5), OpId(4), OpId(6)};
  plan.graphs[1].gathers[0].position = 1;
  EXPECT_THAT(FindPlanFaults(plan, TwoLayers()), testing::IsEmpty());
}

TEST(FindPlanFaultsTest, EarlierGathersHaveNone) {
  Plan plan = ValidPlan();
  plan.graphs[0].gathers = {{0, {ParamId(1), ParamId(0)}}};
  EXPECT_THAT(FindPlanFaults(plan, TwoLayers()), testing::IsEmpty());
}

struct Break {
  const char* name;
  void (*change)(Plan& plan);
  std::vector<std::string> faults;
};

class PlanFaultsTest : public testing::TestWithParam<Break> {};

TEST_P(PlanFaultsTest, AreFound) {
  Plan plan = ValidPlan();
  GetParam().change(plan);
  EXPECT_EQ(FindPlanFaults(plan, TwoLayers()), GetParam().faults);
}

INSTANTIATE_TEST_SUITE_P(
    Orders,
    PlanFaultsTest,
    testing::Values(Break{"GraphMissing",
                          [](Plan& p) { p.graphs.pop_back(); },
                          {"the plan is for 1 graphs, the workload has 2"}},
                    Break{"OpMissing",
                          [](Plan& p) { p.graphs[0].order.pop_back(); },
                          {"op 2 (aten::sum) is not in the order"}},
                    Break{"OpTwice",
                          [](Plan& p) { p.graphs[0].order.push_back(OpId(2)); },
                          {"op 2 (aten::sum) stands twice in the order"}},
                    Break{"OpOfAnotherGraph",
                          [](Plan& p) { p.graphs[0].order[2] = OpId(3); },
                          {"graph 0: op 3 belongs to another graph"}},
                    Break{"OpOfAnEarlierGraph",
                          [](Plan& p) { p.graphs[1].order[0] = OpId(2); },
                          {"graph 1: op 2 belongs to another graph"}},
                    Break{"OpBeforeItsInput",
                          [](Plan& p) { std::swap(p.graphs[0].order[0], p.graphs[0].order[1]); },
                          {"op 1 (aten::mm) stands before the op that makes its input a"}}),
    RowName());

INSTANTIATE_TEST_SUITE_P(
    Gathers,
    PlanFaultsTest,
    testing::Values(
        Break{"AfterTheFirstUse",
              [](Plan& p) { p.graphs[0].gathers[1].position = 2; },
              {"gather of w2 after its first use"}},
        Break{"Missing",
              [](Plan& p) { p.graphs[0].gathers.pop_back(); },
              {"w2 is used and not gathered"}},
        Break{"Twice",
              [](Plan& p) {
                p.graphs[0].gathers.push_back({1, {ParamId(1)}});
              },
              {"a second gather of w2 in one graph"}},
        Break{"OfAnUnusedParam",
              [](Plan& p) {
                p.graphs[1].gathers.push_back({2, {ParamId(0)}});
              },
              {"gather of w1, which the graph does not use"}},
        Break{"Descending",
              [](Plan& p) { std::swap(p.graphs[0].gathers[0], p.graphs[0].gathers[1]); },
              {"gather positions must ascend and stay within the graph, found 0"}},
        Break{"BehindTheGraph",
              [](Plan& p) {
                p.graphs[1].gathers.push_back({5, {}});
              },
              {"gather positions must ascend and stay within the graph, found 5"}},
        Break{"BelowStage3",
              [](Plan& p) { p.options.stage = 2; },
              {"graph 0: gathers are for stage 3", "graph 1: gathers are for stage 3"}}),
    RowName());

/// The same decisions as events. Forward: gather and wait of w1, then of w2, each released behind
/// its op. Backward: w2 around op 2 of 4, gradients of w2 (op 1) and w1 (op 3) reduced.
Plan EventPlan() {
  Plan plan = ValidPlan();
  const std::vector<ParamId> w1 = {ParamId(0)};
  const std::vector<ParamId> w2 = {ParamId(1)};
  using Kind = GraphEventKind;
  plan.graphs[0].gathers.clear();
  plan.graphs[0].events = {{Kind::kGather, 0, w1}, {Kind::kWait, 0, w1}, {Kind::kRelease, 1, w1},
                           {Kind::kGather, 1, w2}, {Kind::kWait, 1, w2}, {Kind::kRelease, 2, w2}};
  plan.graphs[1].gathers.clear();
  plan.graphs[1].events = {{Kind::kReduce, 2, w2},
                           {Kind::kGather, 2, w2},
                           {Kind::kWait, 2, w2},
                           {Kind::kRelease, 3, w2},
                           {Kind::kReduce, 4, w1}};
  return plan;
}

TEST(FindPlanFaultsTest, EventsHaveNone) {
  EXPECT_THAT(FindPlanFaults(EventPlan(), TwoLayers()), testing::IsEmpty());
}

// w2 may stay gathered from the forward to the backward, which uses it again.
TEST(FindPlanFaultsTest, AParameterMayStayUntilALaterGraphReleasesIt) {
  Plan plan = EventPlan();
  plan.graphs[0].events.pop_back();
  EXPECT_THAT(FindPlanFaults(plan, TwoLayers()), testing::IsEmpty());
}

class EventFaultsTest : public testing::TestWithParam<Break> {};

TEST_P(EventFaultsTest, AreFound) {
  Plan plan = EventPlan();
  GetParam().change(plan);
  EXPECT_EQ(FindPlanFaults(plan, TwoLayers()), GetParam().faults);
}

INSTANTIATE_TEST_SUITE_P(
    Events,
    EventFaultsTest,
    testing::Values(
        Break{"GathersToo",
              [](Plan& p) {
                p.graphs[0].gathers = {{0, {}}};
              },
              {"graph 0 has gathers and events; expected one of both"}},
        Break{"GatherMissing",
              [](Plan& p) { p.graphs[0].events.erase(p.graphs[0].events.begin()); },
              {"no gather of w1, which the graph uses", "wait for w1 before its gather"}},
        Break{"WaitMissing",
              [](Plan& p) { p.graphs[0].events.erase(p.graphs[0].events.begin() + 1); },
              {"no wait for w1, which the graph uses"}},
        Break{"WaitBeforeGather",
              [](Plan& p) { std::swap(p.graphs[0].events[0], p.graphs[0].events[1]); },
              {"wait for w1 before its gather"}},
        Break{"GatherLate",
              [](Plan& p) {
                p.graphs[0].events[3].position = 2;
                p.graphs[0].events[4].position = 2;
              },
              {"gather of w2 after its first use", "wait for w2 after its first use"}},
        Break{"ReleaseMissing",
              [](Plan& p) { p.graphs[1].events.erase(p.graphs[1].events.begin() + 3); },
              {"no release of w2, which the graph uses"}},
        Break{"ReleaseEarly",
              [](Plan& p) { p.graphs[0].events.back().position = 1; },
              {"release of w2 before its last use"}},
        Break{"ReleaseTwice",
              [](Plan& p) { p.graphs[0].events.push_back(p.graphs[0].events.back()); },
              {"a second release of w2 in one graph"}},
        Break{"Unused",
              [](Plan& p) {
                p.graphs[1].events.insert(p.graphs[1].events.begin(),
                                          {GraphEventKind::kGather, 0, {ParamId(0)}});
              },
              {"gather of w1, which the graph does not use"}},
        Break{"ReductionMissing",
              [](Plan& p) { p.graphs[1].events.pop_back(); },
              {"no reduction of w1, whose gradient the graph makes"}},
        Break{"ReductionEarly",
              [](Plan& p) { p.graphs[1].events[0].position = 1; },
              {"reduction of w2 before its gradient is made"}},
        Break{"ReductionInForward",
              [](Plan& p) {
                p.graphs[0].events.push_back({GraphEventKind::kReduce, 3, {ParamId(0)}});
              },
              {"reduction of w1, whose gradient the graph does not make"}},
        Break{"Descending",
              [](Plan& p) { p.graphs[0].events[2].position = 2; },
              {"event positions must ascend and stay within the graph, found 1",
               "event positions must ascend and stay within the graph, found 1"}},
        Break{"BelowStage3",
              [](Plan& p) { p.options.stage = 1; },
              {"graph 0: gathers are for stage 3", "graph 1: gathers are for stage 3"}}),
    RowName());

TEST(FindPlanFaultsTest, AllAreReported) {
  Plan plan = ValidPlan();
  plan.graphs[0].order.pop_back();
  plan.graphs[1].order.pop_back();
  EXPECT_EQ(FindPlanFaults(plan, TwoLayers()),
            (std::vector<std::string>{"op 2 (aten::sum) is not in the order",
                                      "op 6 (aten::mm) is not in the order"}));
}

}  // namespace
}  // namespace dcsim
