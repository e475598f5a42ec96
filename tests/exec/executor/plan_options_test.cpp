// Options of a plan move work and memory about; what a job computes stays the same. Every option is
// executed beside the plain plan of its stage and has to give the same bits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/equal.h>

#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "tests/exec/support/host_training.h"
#include "tests/support/activation_plans.h"
#include "tests/support/row_name.h"
#include "tests/support/source_folder.h"
#include "tests/support/workloads.h"
#include "tools/common/load.h"

namespace dcsim::exec {
namespace {

constexpr int kSteps = 2;
constexpr int kRanks = 3;  // divides none of tiny-llama's 30 parameters

/// Two micro-steps, so that gradients are added. AdamW in passes gives an element the same bits
/// wherever it lies; the fused CPU kernel does not, at the end of a tensor.
PlanSpec PlainSpec(int stage) {
  PlanSpec spec;
  spec.options.stage = stage;
  spec.options.gradient_accumulation_steps = 2;
  spec.options.reduce_bucket = 40'000;
  spec.options.optimizer = OptimizerKernels::kForLoop;
  return spec;
}

void ExpectSameBits(const Graph& graph,
                    const std::vector<TrainedStep>& actual,
                    const std::vector<TrainedStep>& expected) {
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_EQ(actual[step].losses, expected[step].losses) << "step " << step;
    for (std::size_t i = 0; i < graph.params.size(); ++i) {
      if (!graph.params[i].requires_grad) {
        continue;
      }
      EXPECT_TRUE(at::equal(actual[step].gradients[i], expected[step].gradients[i]))
          << "step " << step << ", gradient of " << graph.params[i].name;
      EXPECT_TRUE(at::equal(actual[step].masters[i], expected[step].masters[i]))
          << "step " << step << ", " << graph.params[i].name;
    }
  }
}

struct OptionRow {
  std::string name;
  std::vector<int> stages;
  std::function<void(PlanSpec&)> change;
};

const std::vector<OptionRow> option_rows = {
    {"OneBuffer", {1, 2, 3}, [](PlanSpec& spec) { spec.options.double_buffer = false; }},
    {"ReduceScatter",
     {1, 2},
     [](PlanSpec& spec) { spec.options.reduce_collective = ReduceCollective::kReduceScatter; }},
    {"OneCollectiveABucket",
     {1, 2},
     [](PlanSpec& spec) { spec.options.flush_collectives = FlushCollectives::kOnePerBucket; }},
    {"TwoCommunicators", {1, 2, 3}, [](PlanSpec& spec) { spec.options.communicators = 2; }},
    {"RecordStream",
     {3},
     [](PlanSpec& spec) { spec.options.release = ReleaseMode::kRecordStream; }},
    {"GatherOneAhead", {3}, [](PlanSpec& spec) { spec.gather_ahead = 1; }},
    {"GatherAllAhead", {3}, [](PlanSpec& spec) { spec.gather_ahead = 1000; }},
    {"CopyEngine", {3}, [](PlanSpec& spec) { spec.options.gather_engine = Engine::kCopyEngine; }},
    {"CopyEngineAhead",
     {3},
     [](PlanSpec& spec) {
       spec.options.gather_engine = Engine::kCopyEngine;
       spec.gather_ahead = 5;
     }},
    {"CopyEngineKeepAll",
     {3},
     [](PlanSpec& spec) {
       spec.options.gather_engine = Engine::kCopyEngine;
       spec.keep_gathered.all = true;
     }},
    {"Synchronized",
     {1, 2, 3},
     [](PlanSpec& spec) {
       spec.options.synchronize = {true, true, true, true};
     }},
    {"KeepAll", {3}, [](PlanSpec& spec) { spec.keep_gathered.all = true; }},
    {"KeepSome", {3}, [](PlanSpec& spec) { spec.keep_gathered.patterns = {"*norm*"}; }},
    // 4000 elements hold a few gradients, 2000 too few for the embedding's 3395: overflow,
    // growth.
    {"SmallBucket", {1, 2, 3}, [](PlanSpec& spec) { spec.options.reduce_bucket = 4000; }},
    {"GrowingBucket", {1, 2, 3}, [](PlanSpec& spec) { spec.options.reduce_bucket = 2000; }},
    {"GrowingBucketOneBuffer",
     {1, 2, 3},
     [](PlanSpec& spec) {
       spec.options.reduce_bucket = 2000;
       spec.options.double_buffer = false;
     }},
    {"GrowingBucketScattered",
     {1, 2},
     [](PlanSpec& spec) {
       spec.options.reduce_bucket = 2000;
       spec.options.reduce_collective = ReduceCollective::kReduceScatter;
     }},
    // Every gradient is larger than the buffer until it has grown.
    {"BucketOfOneElement", {1, 2, 3}, [](PlanSpec& spec) { spec.options.reduce_bucket = 1; }},
    // A norm that no gradient reaches: the factor is 1.
    {"ClippingFarAway", {1, 2, 3}, [](PlanSpec& spec) { spec.options.gradient_clipping = 1e6; }},
    {"DeepCompile0171",
     {3},
     [](PlanSpec& spec) {
       spec.policy = "deepcompile-0.17.1";
       spec.options.buffer_lifetime = BufferLifetime::kPermanent;
     }},
    {"DeepCompile0196", {1, 2, 3}, [](PlanSpec& spec) { spec.policy = "deepcompile-0.19.6"; }},
    {"DeepCompile0198",
     {1, 2, 3},
     [](PlanSpec& spec) {
       spec.policy = "deepcompile-0.19.8";
       spec.options.release = ReleaseMode::kRecordStream;
     }},
    {"Eager",
     {1, 2, 3},
     [](PlanSpec& spec) {
       spec.policy = "deepspeed-eager";
       spec.options.gradient_buckets = GradientBuckets::kEager;
     }},
    {"EagerSmallBucketAndReach",
     {1, 2, 3},
     [](PlanSpec& spec) {
       spec.policy = "deepspeed-eager";
       spec.options.gradient_buckets = GradientBuckets::kEager;
       spec.options.reduce_bucket = 2000;
       spec.eager_gathers = {1500, 10, 3000, 2000};
     }},
    {"EagerWithoutBuffer",
     {1, 2, 3},
     [](PlanSpec& spec) {
       spec.options.gradient_buckets = GradientBuckets::kEager;
       spec.options.contiguous_gradients = false;
       spec.options.reduce_bucket = 4000;
     }},
    {"EagerOverlapping",
     {1, 2},
     [](PlanSpec& spec) {
       spec.options.gradient_buckets = GradientBuckets::kEager;
       spec.options.overlap_comm = true;
       spec.options.reduce_bucket = 2000;
     }},
    {"EagerFlatByCopies",
     {1, 2, 3},
     [](PlanSpec& spec) {
       spec.options.gradient_buckets = GradientBuckets::kEager;
       spec.options.flatten = Flatten::kCopy;
       spec.options.reduce_bucket = 4000;
     }},
    {"PermanentBuffers",
     {1, 2, 3},
     [](PlanSpec& spec) { spec.options.buffer_lifetime = BufferLifetime::kPermanent; }},
    {"PermanentBuffersGrown",
     {1, 2, 3},
     [](PlanSpec& spec) {
       spec.options.buffer_lifetime = BufferLifetime::kPermanent;
       spec.options.reduce_bucket = 2000;
     }},
    {"BuffersOfPr8036",
     {1, 2, 3},
     [](PlanSpec& spec) { spec.options.buffer_lifetime = BufferLifetime::kPr8036; }},
    {"OffloadAll", {1, 2, 3}, [](PlanSpec& spec) { spec.offload_optimizer.all = true; }},
    {"OffloadOneState", {1, 2, 3}, [](PlanSpec& spec) { spec.offload_optimizer.bytes = Bytes(1); }},
    {"OffloadInEachMicroStep",
     {1, 2, 3},
     [](PlanSpec& spec) {
       spec.offload_optimizer.all = true;
       spec.options.offload_period = OffloadPeriod::kMicroStep;
     }},
    {"OffloadAdamStatesSync",
     {3},
     [](PlanSpec& spec) {
       spec.policy = "deepcompile-0.19.8";
       spec.options.release = ReleaseMode::kRecordStream;
       spec.passes = {"zero3_compile", "offload_adam_states_sync"};
     }},
    {"OffloadParameters", {3}, [](PlanSpec& spec) { spec.options.offload_parameters = true; }},
    {"OffloadParametersAheadAndStates",
     {3},
     [](PlanSpec& spec) {
       spec.options.offload_parameters = true;
       spec.options.release = ReleaseMode::kRecordStream;
       spec.gather_ahead = 4;
       spec.offload_optimizer.all = true;
     }},
    {"OffloadParametersKeepSome",
     {3},
     [](PlanSpec& spec) {
       spec.options.offload_parameters = true;
       spec.keep_gathered.patterns = {"*norm*"};
     }},
    {"OffloadParametersDeepCompile",
     {3},
     [](PlanSpec& spec) {
       spec.policy = "deepcompile-0.19.6";
       spec.options.offload_parameters = true;
     }},
    {"FusedGathers",
     {3},
     [](PlanSpec& spec) {
       spec.passes = {"gather_at_use", "fuse_gathers", "gather_ahead"};
       spec.gather_ahead = 1;
     }},
    {"ExpandableSegments",
     {1, 3},
     [](PlanSpec& spec) { spec.options.allocator = AllocatorMode::kExpandableSegments; }},
};

struct StageRow {
  std::string name;
  int stage;
  std::function<void(PlanSpec&)> change;
};

std::vector<StageRow> OptionsByStage() {
  std::vector<StageRow> rows;
  for (const OptionRow& option : option_rows) {
    for (const int stage : option.stages) {
      rows.push_back({option.name + "_Zero" + std::to_string(stage), stage, option.change});
    }
  }
  return rows;
}

class PlanOptionsTest : public testing::TestWithParam<StageRow> {};

TEST_P(PlanOptionsTest, ChangeNoBit) {
  const Graph graph = WorkloadGraph("tiny-llama");
  const PlanSpec plain = PlainSpec(GetParam().stage);
  PlanSpec changed = plain;
  GetParam().change(changed);
  ASSERT_NE(changed, plain);
  ExpectSameBits(graph, TrainOnHost({graph, changed, kRanks}, kSteps),
                 TrainOnHost({graph, plain, kRanks}, kSteps));
}

INSTANTIATE_TEST_SUITE_P(Options, PlanOptionsTest, testing::ValuesIn(OptionsByStage()), RowName());

// The same of what Inductor makes of the model, whose kernels share memory.

class CompiledOptionsTest : public testing::TestWithParam<StageRow> {};

std::vector<StageRow> CompiledOptionsByStage() {
  std::vector<StageRow> rows = OptionsByStage();
  std::erase_if(rows, [](const StageRow& row) {  // eager steps run no compiled graph
    PlanSpec spec = PlainSpec(row.stage);
    row.change(spec);
    return spec.policy == "deepspeed-eager";
  });
  return rows;
}

TEST_P(CompiledOptionsTest, ChangeNoBit) {
  const Graph graph = CompiledWorkloadGraph("tiny-llama", GetParam().stage);
  PlanSpec plain = PlainSpec(GetParam().stage);
  plain.options.backend = Backend::kInductor;
  plain.options.gradient_handling = GradientHandling::kLean;
  PlanSpec changed = plain;
  GetParam().change(changed);
  ExpectSameBits(graph, TrainOnHost({graph, changed, kRanks}, kSteps),
                 TrainOnHost({graph, plain, kRanks}, kSteps));
}

INSTANTIATE_TEST_SUITE_P(Options,
                         CompiledOptionsTest,
                         testing::ValuesIn(CompiledOptionsByStage()),
                         RowName());

// The rows above would prove little if they lowered to the plain schedule.

std::size_t CountTasks(const PlanSpec& spec, const Graph& graph, TaskKind kind) {
  const Schedule schedule = Lower(Resolve(spec, graph, kRanks), graph, nullptr, {});
  std::size_t count = 0;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    count += schedule.task(TaskId(i)).kind == kind ? 1U : 0U;
  }
  return count;
}

TEST(PlanOptionsRowsTest, BucketsOverflowAndGrow) {
  const Graph graph = WorkloadGraph("tiny-llama");
  PlanSpec spec = PlainSpec(2);
  EXPECT_EQ(CountTasks(spec, graph, TaskKind::kReduce), 2U);  // one a micro-step
  EXPECT_EQ(CountTasks(spec, graph, TaskKind::kHostSynchronize), 0U);
  spec.options.reduce_bucket = 2000;
  EXPECT_GE(CountTasks(spec, graph, TaskKind::kReduce), 2U * (36'330 / 3395));
  EXPECT_GT(CountTasks(spec, graph, TaskKind::kHostSynchronize), 0U);
}

TEST(PlanOptionsRowsTest, GathersMoveAndVanish) {
  const Graph graph = WorkloadGraph("tiny-llama");
  PlanSpec spec = PlainSpec(3);
  const std::size_t plain = CountTasks(spec, graph, TaskKind::kAllGather);
  spec.keep_gathered.patterns = {"*norm*"};
  EXPECT_LT(CountTasks(spec, graph, TaskKind::kAllGather), plain);
  spec.keep_gathered.all = true;
  EXPECT_EQ(CountTasks(spec, graph, TaskKind::kAllGather), 30U);  // each parameter once
}

// DeepCompile's floor pass leaves tensors below 5 MiB alone, and tiny-llama has no larger ones.
TEST(OffloadActivationsTest, ChangeNoBit) {
  const Graph graph = WorkloadGraph("tiny-llama");
  PlanSpec spec = PlainSpec(3);
  spec.policy = "deepcompile-0.19.8";
  const auto plain = TrainOnHost({graph, spec, kRanks}, kSteps);
  std::size_t moved = 0;
  const auto move = [&](Plan& plan) { moved = OffloadAllActivations(graph, plan); };
  ExpectSameBits(graph, TrainOnHost({graph, spec, kRanks, 0, move}, kSteps), plain);
  EXPECT_GE(moved, 10U);
}

// ZeRO-2 and 3 add in the same order, so they compute the same; and so does ZeRO-1 with one
// micro-step, or where it reduces in each.

TEST(StagesTest, Zero2AndZero3ComputeTheSame) {
  const Graph graph = WorkloadGraph("tiny-llama");
  ExpectSameBits(graph, TrainOnHost({graph, PlainSpec(3), kRanks}, kSteps),
                 TrainOnHost({graph, PlainSpec(2), kRanks}, kSteps));
}

TEST(StagesTest, Zero1ThatReducesInEachMicroStepComputesWhatZero2Does) {
  const Graph graph = WorkloadGraph("tiny-llama");
  PlanSpec spec = PlainSpec(1);
  spec.policy = "deepcompile-0.17.1";
  spec.options.buffer_lifetime = BufferLifetime::kPermanent;
  spec.options.gradient_reduction = GradientReduction::kEachMicroStep;
  ExpectSameBits(graph, TrainOnHost({graph, spec, kRanks}, kSteps),
                 TrainOnHost({graph, PlainSpec(2), kRanks}, kSteps));
}

TEST(StagesTest, AllStagesComputeTheSameInOneMicroStep) {
  const Graph graph = WorkloadGraph("tiny-llama");
  std::vector<std::vector<TrainedStep>> trained;
  for (const int stage : {1, 2, 3}) {
    PlanSpec spec = PlainSpec(stage);
    spec.options.gradient_accumulation_steps = 1;
    trained.push_back(TrainOnHost({graph, spec, kRanks}, kSteps));
  }
  ExpectSameBits(graph, trained[1], trained[0]);
  ExpectSameBits(graph, trained[2], trained[0]);
}

// Coalesced, all stages add whole gradients over the micro-steps and reduce the sum, as ZeRO-1
// does.
TEST(StagesTest, CoalescedReductionComputesWhatZero1Does) {
  const Graph graph = WorkloadGraph("tiny-llama");
  const auto expected = TrainOnHost({graph, PlainSpec(1), kRanks}, kSteps);
  for (const int stage : {1, 2, 3}) {
    for (const std::int64_t bucket : {40'000, 2000}) {
      PlanSpec spec = PlainSpec(stage);
      spec.options.gradient_reduction = GradientReduction::kCoalesced;
      spec.options.reduce_bucket = bucket;
      ExpectSameBits(graph, TrainOnHost({graph, spec, kRanks}, kSteps), expected);
    }
  }
}

// A step of two graphs, of which the one that runs last makes no gradient.
TEST(TwoGraphsTest, EveryPolicyComputesTheSame) {
  const Graph graph = LoadWorkload(SourceFolder() + "/tests/data/two-graphs").graph;
  for (const int stage : {1, 2, 3}) {
    const PlanSpec plain = PlainSpec(stage);
    const auto expected = TrainOnHost({graph, plain, kRanks}, kSteps);
    for (const std::string policy :
         {"deepcompile-0.19.6", "deepcompile-0.19.8", "deepspeed-eager"}) {
      PlanSpec spec = plain;
      spec.policy = policy;
      spec.options.release = ReleaseMode::kRecordStream;
      spec.options.buffer_lifetime =
          policy == "deepspeed-eager" ? BufferLifetime::kStep : BufferLifetime::kPr8036;
      spec.options.gradient_buckets =
          policy == "deepspeed-eager" ? GradientBuckets::kEager : GradientBuckets::kDeepCompile;
      ExpectSameBits(graph, TrainOnHost({graph, spec, kRanks}, kSteps), expected);
    }
  }
}

TEST(StagesTest, OtherSeedsTrainOtherWeights) {
  const Graph graph = WorkloadGraph("tiny-llama");
  const auto one = TrainOnHost({graph, PlainSpec(2), 2, /*seed=*/0}, 1);
  const auto other = TrainOnHost({graph, PlainSpec(2), 2, /*seed=*/1}, 1);
  EXPECT_NE(one[0].losses, other[0].losses);
}

}  // namespace
}  // namespace dcsim::exec
