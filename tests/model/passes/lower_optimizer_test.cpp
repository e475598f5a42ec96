#include <string>

#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "tests/support/schedule_edit.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

// The optimizer step of TwoLayers in ZeRO-1 over two ranks: 10 elements of the partition.

PlanSpec OptimizerSpec(OptimizerKernels kernels) {
  PlanSpec spec = TinySpec(1);
  spec.options.optimizer = kernels;
  return spec;
}

// Master, gradient and two moments read, all but the gradient written: 28 B an element.
constexpr char kFused[] = R"(
18 compute cast-gradients [60 B] r b9 w b17 +b17 -b9
19 compute optimizer-step [280 B] r b17 w b1,b2,b3
20 compute store-params [60 B] r b1 w b0 -b17
)";

TEST(LowerOptimizerTest, FusedHoldsNoTemporary) {
  EXPECT_EQ(TinyTaskLines(OptimizerSpec(OptimizerKernels::kFused), TwoLayers(), 18, 20), kFused);
}

// torch.optim.AdamW in float32, bytes an element: weight decay (read, write) 8; exp_avg lerp (read
// two, write) 12; exp_avg_sq mul 8 and addcmul 12; sqrt 8; division by the bias correction 8; eps
// 8; addcdiv (read three, write) 16: 80. The square root's result is a temporary.
constexpr char kForeach[] = R"(
18 compute cast-gradients [60 B] r b9 w b17 +b17 -b9
19 compute optimizer-step [800 B] r b17 w b1,b2,b3 +b18 -b18
20 compute store-params [60 B] r b1 w b0 -b17
)";

TEST(LowerOptimizerTest, ForeachHoldsOneTemporary) {
  const PlanSpec spec = OptimizerSpec(OptimizerKernels::kForeach);
  EXPECT_EQ(TinyTaskLines(spec, TwoLayers(), 18, 20), kForeach);
  EXPECT_EQ(LowerTiny(spec, TwoLayers()).buffer(BufferId(18)).bytes, Bytes(40));
}

constexpr char kForLoop[] = R"(
18 compute cast-gradients [60 B] r b9 w b17 +b17 -b9
19 compute optimizer-step [800 B] r b17 w b1,b2,b3 +b18 +b19 -b18 -b19
20 compute store-params [60 B] r b1 w b0 -b17
)";

TEST(LowerOptimizerTest, ForLoopHoldsTwoTemporaries) {
  EXPECT_EQ(TinyTaskLines(OptimizerSpec(OptimizerKernels::kForLoop), TwoLayers(), 18, 20),
            kForLoop);
}

TEST(LowerOptimizerTest, FusedIsOneKernelTheOthersAreEight) {
  const auto launches = [](OptimizerKernels kernels) {
    const Schedule schedule = LowerTiny(OptimizerSpec(kernels), TwoLayers());
    return schedule.work(schedule.task(NthTask(schedule, TaskKind::kOptimizerStep)).work).launches;
  };
  EXPECT_EQ(launches(OptimizerKernels::kFused), 1);
  EXPECT_EQ(launches(OptimizerKernels::kForeach), 8);
  EXPECT_EQ(launches(OptimizerKernels::kForLoop), 8);
}

struct Update {
  OptimizerAlgorithm algorithm;
  OptimizerKernels kernels;
  const char* line;
};

/// Master weights b1, then as many moments as the algorithm has and, but for SGD, a step count. In
/// bytes of 10 float32 elements: SGD reads master and gradient and writes master, 120 B; with
/// momentum, and Lion, it reads and writes one state as well, 200 B. Passes: SGD adds the gradient,
/// 120 B; its momentum is scaled (80 B) and the gradient added (120 B) before it is. Adam's are
/// AdamW's without weight decay.
const Update kUpdates[] = {
    {OptimizerAlgorithm::kSgd, OptimizerKernels::kFused, "optimizer-step [120 B] r b14 w b1\n"},
    {OptimizerAlgorithm::kSgd, OptimizerKernels::kForeach, "optimizer-step [120 B] r b14 w b1\n"},
    {OptimizerAlgorithm::kSgdMomentum, OptimizerKernels::kFused,
     "optimizer-step [200 B] r b15 w b1,b2\n"},
    {OptimizerAlgorithm::kSgdMomentum, OptimizerKernels::kForLoop,
     "optimizer-step [320 B] r b15 w b1,b2\n"},
    {OptimizerAlgorithm::kLion, OptimizerKernels::kFused, "optimizer-step [200 B] r b16 w b1,b2\n"},
    {OptimizerAlgorithm::kLion, OptimizerKernels::kDeepSpeedFused,
     "optimizer-step [200 B] r b16 w b1,b2\n"},
    {OptimizerAlgorithm::kAdam, OptimizerKernels::kFused,
     "optimizer-step [280 B] r b17 w b1,b2,b3\n"},
    {OptimizerAlgorithm::kAdam, OptimizerKernels::kDeepSpeedFused,
     "optimizer-step [280 B] r b17 w b1,b2,b3\n"},
    {OptimizerAlgorithm::kAdam, OptimizerKernels::kForeach,
     "optimizer-step [720 B] r b17 w b1,b2,b3 +b18 -b18\n"},
};

TEST(LowerOptimizerTest, EachAlgorithmMovesItsOwnStates) {
  for (const Update& row : kUpdates) {
    PlanSpec spec = OptimizerSpec(row.kernels);
    spec.options.training.algorithm = row.algorithm;
    const std::string text = TinyScheduleText(spec, TwoLayers());
    EXPECT_NE(text.find(row.line), std::string::npos) << row.line << text;
  }
}

/// A parameter of so many elements, a gradient of it.
Graph OneParam(const std::string& elements) {
  return ParseGraphText("graph one 1 tokens\nparam w bfloat16[" + elements + R"(]
forward
  l: float32[] = my::loss(w)
  loss l
backward
  tangent t: float32[] of l
  g: bfloat16[)" + elements +
                        R"(] = my::grad(t)
  gradient w = g
)");
}

// DeepSpeed's kernels take 65,536 elements a thread block and 320 blocks a launch: 20,971,520
// elements. Two ranks each have half of twice as many.
TEST(LowerOptimizerTest, DeepSpeedsKernelsTake320ChunksALaunch) {
  const auto launches = [](const std::string& elements, OptimizerAlgorithm algorithm) {
    PlanSpec spec = OptimizerSpec(OptimizerKernels::kDeepSpeedFused);
    spec.options.training.algorithm = algorithm;
    const Schedule schedule = LowerTiny(spec, OneParam(elements));
    return schedule.work(schedule.task(NthTask(schedule, TaskKind::kOptimizerStep)).work).launches;
  };
  EXPECT_EQ(launches("41943040", OptimizerAlgorithm::kAdamW), 1U);
  EXPECT_EQ(launches("41943044", OptimizerAlgorithm::kAdamW), 2U);
  EXPECT_EQ(launches("125829120", OptimizerAlgorithm::kLion), 3U);
}

MemoryPattern PatternOf(const Schedule& schedule, TaskKind kind) {
  return schedule.work(schedule.task(NthTask(schedule, kind)).work).pattern;
}

// 20 elements: a partition of 10 on two ranks is no multiple of four, 20 on one rank are.
TEST(LowerOptimizerTest, FusedGoesByFourElementsWhereThePartitionAllowsIt) {
  PlanSpec spec = TinySpec(1);
  EXPECT_EQ(PatternOf(LowerTiny(spec, TwoLayers()), TaskKind::kOptimizerStep),
            MemoryPattern::kAdamWUneven);
  const Graph graph = TwoLayers();
  EXPECT_EQ(PatternOf(Lower(Resolve(spec, graph, 1), graph, nullptr, {}), TaskKind::kOptimizerStep),
            MemoryPattern::kAdamW);
}

// AdamW's rate is measured for torch's fused kernel; other kernels are estimated from it.
// DeepSpeed's take one element after the other whatever the number.
TEST(LowerOptimizerTest, OtherFusedKernelsHaveAPatternOfTheirOwn) {
  const auto pattern = [](OptimizerAlgorithm algorithm, OptimizerKernels kernels) {
    PlanSpec spec = OptimizerSpec(kernels);
    spec.options.training.algorithm = algorithm;
    return PatternOf(LowerTiny(spec, OneParam("16")), TaskKind::kOptimizerStep);
  };
  EXPECT_EQ(pattern(OptimizerAlgorithm::kAdam, OptimizerKernels::kFused), MemoryPattern::kAdamW);
  EXPECT_EQ(pattern(OptimizerAlgorithm::kSgd, OptimizerKernels::kFused),
            MemoryPattern::kFusedUpdate);
  EXPECT_EQ(pattern(OptimizerAlgorithm::kAdamW, OptimizerKernels::kDeepSpeedFused),
            MemoryPattern::kFusedUpdateUneven);
  EXPECT_EQ(pattern(OptimizerAlgorithm::kLion, OptimizerKernels::kFused),
            MemoryPattern::kFusedUpdateUneven);
  EXPECT_EQ(pattern(OptimizerAlgorithm::kSgdMomentum, OptimizerKernels::kForeach),
            MemoryPattern::kPasses);
}

// The weights of a rank lie together, or, with reduce-scatter, in each parameter's place.
TEST(LowerOptimizerTest, WeightsAreStoredAsTheyAreCut) {
  const auto launches = [](int stage, ReduceCollective collective) {
    PlanSpec spec = TinySpec(stage);
    spec.options.reduce_collective = collective;
    const Schedule schedule = LowerTiny(spec, TwoLayers());
    return schedule.work(schedule.task(NthTask(schedule, TaskKind::kStoreParams)).work).launches;
  };
  EXPECT_EQ(launches(1, ReduceCollective::kAllReduce), 1U);
  EXPECT_EQ(launches(1, ReduceCollective::kReduceScatter), TwoLayers().params.size());
  EXPECT_EQ(launches(3, ReduceCollective::kReduceScatter), 1U);
}

TEST(LowerOptimizerTest, UpdatedWeightsAreGatheredInPlace) {
  const Schedule schedule = LowerTiny(TinySpec(1), TwoLayers());
  EXPECT_TRUE(schedule.FindCollective(NthTask(schedule, TaskKind::kGatherUpdated))->in_place);
}

// Clipping: the partition's norm (20 B read), one float32 summed over ranks behind it, compute
// waits for the sum, which lives until the step's end; the float32 gradient is scaled in place, 40
// B read and written, by one float.
constexpr char kClipped[] = R"(
17 host end-backward after 15 -b13 -b14
18 compute gradient-norm [20 B] r b9 w b18 +b17 +b18 -b17
19 reduce reduce-norm [4 B] after 18 w b18
20 compute wait for reduce-norm after 19
21 compute cast-gradients [60 B] r b9 w b19 +b19 -b9
22 compute clip-gradients [80 B] r b18 w b19 +b20 -b20
23 compute optimizer-step [280 B] r b19 w b1,b2,b3
24 compute store-params [60 B] r b1 w b0 -b19 -b18
25 reduce gather-updated [40 B] after 24 w b0
26 compute wait for gather-updated after 25
)";

TEST(LowerOptimizerTest, ClippingNeedsTheNormOfAllRanks) {
  PlanSpec spec = TinySpec(1);
  spec.options.gradient_clipping = 1.0;
  EXPECT_EQ(TinyTaskLines(spec, TwoLayers(), 17, 26), kClipped);
  EXPECT_EQ(PatternOf(LowerTiny(spec, TwoLayers()), TaskKind::kClipGradients),
            MemoryPattern::kClip);
}

// Where nothing is trained there is no norm to reduce.
TEST(LowerOptimizerTest, ClippingNothingIsNoWork) {
  PlanSpec spec = TinySpec(1);
  spec.options.gradient_clipping = 1.0;
  const std::string text = TinyScheduleText(spec, ParseGraphText(R"(
graph frozen 1 tokens
param a float32[4] frozen
forward
  l: float32[] = my::loss(a)
  loss l
)"));
  EXPECT_EQ(text.find("norm"), std::string::npos) << text;
}

/// bfloat16 a [4] and float32 b [2], both trained, and c [3], bfloat16 and frozen.
Graph TwoDTypesOneFrozen() {
  return ParseGraphText(R"(
graph mixed 1 tokens
param a bfloat16[4]
param b float32[2]
param c bfloat16[3] frozen
forward
  l: float32[] = my::loss(a, b, c)
  loss l
backward
  tangent t: float32[] of l
  ga: bfloat16[4] = my::grad(t)
  gb: float32[2] = my::grad(t)
  gradient a = ga
  gradient b = gb
)");
}

// Each dtype is a flat tensor of its own. bfloat16: 4 trained elements, a multiple of 2 * ranks,
// and 3 frozen ones, 14 B; partition 2 elements. float32: 2 elements padded to 4, 16 B;
// partition 2.
constexpr char kMixedResidents[] = R"(
resident b0 parameters 14 B
resident b1 master weights 8 B
resident b2 optimizer states 8 B
resident b3 optimizer states 8 B
resident b4 optimizer states 4 B
resident b5 parameters 16 B
resident b6 master weights 8 B
resident b7 optimizer states 8 B
resident b8 optimizer states 8 B
resident b9 optimizer states 4 B
)";

TEST(LowerOptimizerTest, EachDTypeHasItsOwnStates) {
  const std::string text = TinyScheduleText(TinySpec(1), TwoDTypesOneFrozen());
  EXPECT_EQ(text.substr(0, text.find("0 compute")), kMixedResidents);
}

// SGD has master weights alone. Lion has one moment, and DeepSpeed's kernels one int32 for all
// parameters.
constexpr char kSgdResidents[] = R"(
resident b0 parameters 14 B
resident b1 master weights 8 B
resident b2 parameters 16 B
resident b3 master weights 8 B
)";
constexpr char kLionResidents[] = R"(
resident b0 parameters 14 B
resident b1 master weights 8 B
resident b2 optimizer states 8 B
resident b3 optimizer states 4 B
resident b4 parameters 16 B
resident b5 master weights 8 B
resident b6 optimizer states 8 B
)";

TEST(LowerOptimizerTest, AlgorithmsKeepTheirOwnStates) {
  const auto residents = [](OptimizerAlgorithm algorithm) {
    PlanSpec spec = TinySpec(1);
    spec.options.training.algorithm = algorithm;
    const std::string text = TinyScheduleText(spec, TwoDTypesOneFrozen());
    return text.substr(0, text.find("0 compute"));
  };
  EXPECT_EQ(residents(OptimizerAlgorithm::kSgd), kSgdResidents);
  EXPECT_EQ(residents(OptimizerAlgorithm::kLion), kLionResidents);
  EXPECT_EQ(residents(OptimizerAlgorithm::kAdam), kMixedResidents);
}

// One after the other; both gathers of new weights, and compute waits for the last.
constexpr char kMixedOptimizer[] = R"(
20 compute cast-gradients [12 B] r b11 w b20 +b20 -b11
21 compute optimizer-step [56 B] r b20 w b1,b2,b3
22 compute store-params [12 B] r b1 w b0 -b20
23 reduce gather-updated [8 B] after 22 w b0
24 compute cast-gradients [16 B] r b12 w b21 +b21 -b12
25 compute optimizer-step [56 B] r b21 w b6,b7,b8
26 compute store-params [16 B] r b6 w b5 -b21
27 reduce gather-updated [16 B] after 26 w b5
28 compute wait for gather-updated after 27
)";

TEST(LowerOptimizerTest, DTypesAreUpdatedOneAfterTheOther) {
  EXPECT_EQ(TinyTaskLines(TinySpec(1), TwoDTypesOneFrozen(), 20, 28), kMixedOptimizer);
}

Graph AllFrozen() {
  return ParseGraphText(R"(
graph frozen 1 tokens
param w bfloat16[4] frozen
forward
  l: float32[] = my::loss(w)
  loss l
)");
}

// ZeRO-3: the shard of 2 elements, and nothing to optimize.
constexpr char kNothingToTrain[] = R"(
resident b0 parameters 4 B
0 gather all-gather w [8 B] r b0 w b2 +b2
1 compute wait for all-gather w after 0
2 compute my::loss r b2 w b1 +b1
3 host release w -b2
4 host free -b1
5 gather wait for my::loss after 2
)";

TEST(LowerOptimizerTest, FrozenParametersHaveNoStates) {
  EXPECT_EQ(TinyScheduleText(TinySpec(3), AllFrozen()), kNothingToTrain);
}

}  // namespace
}  // namespace dcsim
