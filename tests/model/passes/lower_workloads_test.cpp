#include <gtest/gtest.h>

#include "model/graph/sharding.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "tests/support/row_name.h"
#include "tests/support/workloads.h"

namespace dcsim {
namespace {

// What theory says about the collectives of the committed workloads (docs/design/schedules.md;
// section 1.5 of "What DeepCompile does"): ZeRO-3 gathers each parameter once in each graph that
// uses it, in every micro-step, and reduces each gradient once a micro-step.

constexpr int kRanks = 8;

PlanSpec Spec(int stage, int micro_steps) {
  PlanSpec spec;
  spec.options.stage = stage;
  spec.options.gradient_accumulation_steps = micro_steps;
  return spec;
}

Schedule LowerWorkload(const Graph& graph, const PlanSpec& spec) {
  return Lower(Resolve(spec, graph, kRanks), graph, nullptr, {});
}

struct Totals {
  std::size_t calls = 0;
  std::int64_t payload_bytes = 0;
  std::int64_t wire_bytes = 0;
};

Totals CountCalls(const Schedule& schedule, TaskKind kind) {
  Totals totals;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    if (schedule.task(TaskId(i)).kind == kind) {
      const Collective& collective = *schedule.FindCollective(TaskId(i));
      totals.calls += collective.calls.size();
      totals.payload_bytes += collective.payload().count();
      totals.wire_bytes += collective.wire().count();
    }
  }
  return totals;
}

struct Workload {
  const char* name;
  const char* folder;
  std::size_t in_forward;   // parameters with uses there
  std::size_t in_backward;  // …
};

class WorkloadScheduleTest : public testing::TestWithParam<Workload> {};

// The backward of an embedding needs the indices and not the table. Where the output layer is tied
// to it (Llama-3.2-1B), that layer's product needs the table. The rest has a product or a scale
// whose input gradient needs the weight. The MLP's first layer: its input needs no gradient.
INSTANTIATE_TEST_SUITE_P(Committed,
                         WorkloadScheduleTest,
                         testing::Values(Workload{"Qwen3", "qwen3-8b", 399, 398},
                                         Workload{"Llama3", "llama-3-8b", 291, 290},
                                         Workload{"Llama32", "llama-3.2-1b", 146, 146},
                                         Workload{"Mlp", "mlp-8x4096", 8, 7}),
                         RowName());

TEST_P(WorkloadScheduleTest, Zero3GathersOnceAGraphAndMicroStep) {
  const Graph graph = WorkloadGraph(GetParam().folder);
  for (const std::size_t micro_steps : {1U, 4U}) {
    const Schedule schedule = LowerWorkload(graph, Spec(3, static_cast<int>(micro_steps)));
    EXPECT_EQ(CountCalls(schedule, TaskKind::kAllGather).calls,
              micro_steps * (GetParam().in_forward + GetParam().in_backward));
  }
}

TEST_P(WorkloadScheduleTest, Zero3ReleasesEveryGather) {
  const Graph graph = WorkloadGraph(GetParam().folder);
  const Schedule schedule = LowerWorkload(graph, Spec(3, 2));
  std::size_t releases = 0;
  for (const Task& task : schedule.tasks()) {
    releases += task.kind == TaskKind::kRelease ? 1 : 0;
  }
  EXPECT_EQ(releases, CountCalls(schedule, TaskKind::kAllGather).calls);
}

TEST_P(WorkloadScheduleTest, Zero3KeepsEverythingWithOneGatherAStep) {
  const Graph graph = WorkloadGraph(GetParam().folder);
  PlanSpec spec = Spec(3, 4);
  spec.keep_gathered.all = true;
  EXPECT_EQ(CountCalls(LowerWorkload(graph, spec), TaskKind::kAllGather).calls,
            graph.params.size());
}

TEST_P(WorkloadScheduleTest, GathersAheadAreAsMany) {
  const Graph graph = WorkloadGraph(GetParam().folder);
  PlanSpec spec = Spec(3, 1);
  spec.gather_ahead = 8;
  EXPECT_EQ(CountCalls(LowerWorkload(graph, spec), TaskKind::kAllGather).calls,
            GetParam().in_forward + GetParam().in_backward);
}

struct Reductions {
  int stage;
  int micro_steps;
  std::size_t per_parameter;
};

// ZeRO-1 reduces in the last micro-step only, ZeRO-2 and 3 in each (1.3 to 1.5).
TEST_P(WorkloadScheduleTest, ReductionsFollowTheStage) {
  const Graph graph = WorkloadGraph(GetParam().folder);
  for (const Reductions& expected :
       {Reductions{1, 1, 1}, Reductions{1, 4, 1}, Reductions{2, 1, 1}, Reductions{2, 4, 4},
        Reductions{3, 1, 1}, Reductions{3, 4, 4}}) {
    const Schedule schedule = LowerWorkload(graph, Spec(expected.stage, expected.micro_steps));
    EXPECT_EQ(CountCalls(schedule, TaskKind::kReduce).calls,
              graph.params.size() * expected.per_parameter)
        << "stage " << expected.stage << ", micro-steps " << expected.micro_steps;
  }
}

/// Bytes of all parameters, each padded to a multiple of the ranks.
std::int64_t PaddedBytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    const ParamId id(i);
    bytes += GatheredElements(graph.numel(id), kRanks) * ElementBytes(graph.dtype(id));
  }
  return bytes;
}

// Every parameter of these models divides by 8, so nothing is rounded: one reduce-scatter of all
// gradients sends 7/8 of them from each rank.
TEST_P(WorkloadScheduleTest, Zero3SendsSevenEighthsOfTheGradients) {
  const Graph graph = WorkloadGraph(GetParam().folder);
  const Totals reduced = CountCalls(LowerWorkload(graph, Spec(3, 1)), TaskKind::kReduce);
  EXPECT_EQ(reduced.payload_bytes, PaddedBytes(graph));
  EXPECT_EQ(reduced.wire_bytes, PaddedBytes(graph) / 8 * 7);
}

// The all-reduce of ZeRO-1 and 2 sends twice that, and gathering the new weights once.
TEST_P(WorkloadScheduleTest, Zero1SendsThreeTimesAsMuch) {
  const Graph graph = WorkloadGraph(GetParam().folder);
  const Schedule schedule = LowerWorkload(graph, Spec(1, 1));
  EXPECT_EQ(CountCalls(schedule, TaskKind::kReduce).wire_bytes, PaddedBytes(graph) / 8 * 14);
  EXPECT_EQ(CountCalls(schedule, TaskKind::kGatherUpdated).wire_bytes, PaddedBytes(graph) / 8 * 7);
}

// Qwen3-8B in bfloat16: 8,190,735,360 parameters, 16.38 GB. A ZeRO-3 step gathers them in the
// forward, and all but the embedding, [151936, 4096], in the backward.
TEST(WorkloadBytesTest, Qwen3GathersAllButTheEmbeddingTwice) {
  const Graph graph = WorkloadGraph("qwen3-8b");
  const Totals gathered = CountCalls(LowerWorkload(graph, Spec(3, 1)), TaskKind::kAllGather);
  constexpr std::int64_t kParameters = 8'190'735'360;
  constexpr std::int64_t kEmbedding = std::int64_t{151'936} * 4096;
  constexpr std::int64_t kBytes = 2 * (2 * kParameters - kEmbedding);
  EXPECT_EQ(gathered.payload_bytes, kBytes);
  EXPECT_EQ(gathered.wire_bytes, kBytes / 8 * 7);
}

/// Bytes of resident buffers of one class.
std::int64_t ResidentBytes(const Schedule& schedule, BufferClass buffer_class) {
  std::int64_t bytes = 0;
  for (const BufferId id : schedule.residents()) {
    const Buffer& buffer = schedule.buffer(id);
    bytes += buffer.buffer_class == buffer_class ? buffer.bytes.count() : 0;
  }
  return bytes;
}

// ZeRO paper (Rajbhandari et al. 2020), mixed precision: 2 + 2 + 12 bytes a parameter; stage 1 cuts
// the 12, stage 2 the gradients as well, stage 3 all, over 8 ranks. 8,190,735,360 divides by 16.
TEST(WorkloadBytesTest, Qwen3sStatesAreCutAsZeroSays) {
  const Graph graph = WorkloadGraph("qwen3-8b");
  constexpr std::int64_t kParameters = 8'190'735'360;
  constexpr std::int64_t kStepCount = 4;  // AdamW's, a float32
  for (const int stage : {1, 2, 3}) {
    const Schedule schedule = LowerWorkload(graph, Spec(stage, 1));
    EXPECT_EQ(ResidentBytes(schedule, BufferClass::kParameter),
              2 * kParameters / (stage == 3 ? 8 : 1));
    EXPECT_EQ(ResidentBytes(schedule, BufferClass::kGradientPartition),
              stage == 1 ? 0 : 2 * kParameters / 8);
    EXPECT_EQ(ResidentBytes(schedule, BufferClass::kMaster), 4 * kParameters / 8);
    EXPECT_EQ(ResidentBytes(schedule, BufferClass::kOptimizerState),
              8 * kParameters / 8 + kStepCount);
  }
}

struct StatesOfOptimizer {
  OptimizerAlgorithm algorithm;
  std::int64_t bytes;       // of moments for each element of a rank's partition
  std::int64_t step_count;  // beside them
};

// 1,235,814,400 parameters, a quarter of them on each of four ranks: AdamW keeps 8 bytes each
// beside 4 of master weights, 2.30 GiB; Lion and SGD with momentum 4, 1.15 GiB less; SGD none. All
// else stays.
TEST(WorkloadBytesTest, LlamasStatesAreTheOptimizers) {
  const Graph graph = WorkloadGraph("llama-3.2-1b");
  constexpr std::int64_t kParameters = 1'235'814'400;
  for (const StatesOfOptimizer& row : {StatesOfOptimizer{OptimizerAlgorithm::kAdamW, 8, 4},
                                       {OptimizerAlgorithm::kAdam, 8, 4},
                                       {OptimizerAlgorithm::kLion, 4, 4},
                                       {OptimizerAlgorithm::kSgdMomentum, 4, 0},
                                       {OptimizerAlgorithm::kSgd, 0, 0}}) {
    for (const int stage : {1, 2, 3}) {
      PlanSpec spec = Spec(stage, 1);
      spec.options.training.algorithm = row.algorithm;
      const Schedule schedule = Lower(Resolve(spec, graph, 4), graph, nullptr, {});
      EXPECT_EQ(ResidentBytes(schedule, BufferClass::kOptimizerState),
                row.bytes * kParameters / 4 + row.step_count);
      EXPECT_EQ(ResidentBytes(schedule, BufferClass::kMaster), 4 * kParameters / 4);
    }
  }
}

// Llama over four ranks, P / 4 elements each: a float32 gradient partition of ZeRO-3 takes 2 bytes
// an element more, 589 MiB; bfloat16 master weights and both moments take 6 instead of 12.
TEST(WorkloadBytesTest, LlamasDTypesAreThePlans) {
  const Graph graph = WorkloadGraph("llama-3.2-1b");
  constexpr std::int64_t kPartition = 1'235'814'400 / 4;
  PlanSpec spec = Spec(3, 1);
  spec.options.training.accumulation = DType::kFloat32;
  const Schedule wide = Lower(Resolve(spec, graph, 4), graph, nullptr, {});
  EXPECT_EQ(ResidentBytes(wide, BufferClass::kGradientPartition), 4 * kPartition);
  EXPECT_EQ(ResidentBytes(wide, BufferClass::kMaster), 4 * kPartition);
  spec.options.training = {OptimizerAlgorithm::kAdamW, DType::kBFloat16, DType::kBFloat16, {}, {}};
  const Schedule narrow = Lower(Resolve(spec, graph, 4), graph, nullptr, {});
  EXPECT_EQ(ResidentBytes(narrow, BufferClass::kGradientPartition), 2 * kPartition);
  EXPECT_EQ(ResidentBytes(narrow, BufferClass::kMaster), 2 * kPartition);
  EXPECT_EQ(ResidentBytes(narrow, BufferClass::kOptimizerState), 4 * kPartition + 4);
}

}  // namespace
}  // namespace dcsim
