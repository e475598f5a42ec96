#include "tests/fuzz/exercise.h"

#include "model/base/error.h"
#include "model/ir/graph_reader.h"
#include "model/ir/graph_text.h"
#include "model/ir/plan_reader.h"
#include "model/passes/resolve.h"
#include "model/passes/verify.h"
#include "sim/analysis/predict.h"
#include "tests/sim/test_cluster.h"
#include "tools/views/dag_model.h"
#include "tools/views/memory_csv.h"
#include "tools/views/result_text.h"
#include "tools/views/timeline_trace.h"

namespace dcsim {
namespace {

constexpr char kGraph[] = R"(
graph fuzz 32 tokens
param w0 bfloat16[64,64]
param b0 float32[64]
param w1 bfloat16[64,64] frozen
param w2 bfloat16[64,64]
input x bfloat16[32,64]
forward
  h0: bfloat16[32,64] = aten::addmm(b0, x, w0) @layers.0
  a0: bfloat16[32,64] = aten::add(h0, b0) @layers.0
  output a0 as cut
forward
  receive a0
  h1: bfloat16[32,64] = aten::mm(a0, w1) @layers.1
  v1: bfloat16[64,32] views h1 = aten::t(h1) @layers.1
  h2: bfloat16[32,64] = aten::mm(v1, w2) @layers.2
  h3: bfloat16[32,64] = aten::mm(h2, w0) @layers.3
  l: float32[] = aten::sum(h3)
  loss l
  output h3 as logits held
  save a0
  save v1
  save h2
backward of 1
  tangent t: float32[] of l
  g: bfloat16[32,64] = aten::fill(t)
  g3: bfloat16[32,64] = aten::mm(g, w0) @layers.3
  r1: bfloat16[32,64] = aten::mm(a0, w1) recompute @layers.1
  gw2: bfloat16[64,64] = aten::mm(v1, g3) @layers.2
  g2: bfloat16[32,64] = aten::mm(g3, w2) @layers.2
  g1: bfloat16[32,64] = aten::mm(g2, w1) @layers.1
  gradient w2 = gw2
  pass g1 of a0
backward of 0
  receive g1
  gb0: float32[64] = aten::sum(g1) @layers.0
  gw0: bfloat16[64,64] = aten::mm(x, g1) @layers.0
  gradient b0 = gb0
  gradient w0 = gw0
)";

void PrintViews(const Schedule& schedule,
                const Graph& graph,
                const Prediction& prediction,
                const Cluster& cluster) {
  PrintResult(prediction.result).dump();
  PrintResultText(prediction.result, cluster);
  if (prediction.timeline) {
    const std::string trace = PrintTimelineTrace({&*prediction.timeline, 1}, schedule, graph, {});
    DCSIM_CHECK(Json::accept(trace));
    PrintMemoryCsv(*prediction.timeline, schedule, graph);
    FoldSchedule(schedule, graph, *prediction.timeline);
  }
}

}  // namespace

const Graph& FuzzGraph() {
  static const Graph graph = ParseGraphText(kGraph);
  return graph;
}

const Cluster& FuzzCluster() {
  static const Cluster cluster = HandCluster();
  return cluster;
}

bool IsSmall(const Graph& graph, const ScheduleOptions& options) {
  constexpr std::size_t kMostOps = 100;
  constexpr int kMostMicroSteps = 3;
  return graph.ops.size() <= kMostOps && graph.params.size() <= kMostOps &&
         options.gradient_accumulation_steps <= kMostMicroSteps;
}

void ExerciseStep(const Graph& graph,
                  const Plan& plan,
                  const Profile* profile,
                  const Cluster& cluster) {
  const PredictionInputs inputs{graph, profile, cluster};
  const Schedule schedule = LowerFor(plan, inputs);
  const auto violations = Verify(schedule, graph);
  DCSIM_CHECK(violations.empty()) << violations.front().message;
  try {
    const Prediction prediction = Predict(schedule, plan, inputs, true);
    DCSIM_CHECK(prediction.result.outcome != "deadlock") << prediction.result.stop->task;
    PrintViews(schedule, graph, prediction, cluster);
  } catch (const Error&) {
    // A product in a dtype that the GPU lacks, or a GPU without memory.
  }
}

namespace {

/// Passes over states and gathers, where the policy takes them.
void AddPasses(std::uint64_t bits, PlanSpec& spec) {
  if (spec.policy == "deepspeed-eager" || (bits & 1U) == 0) {
    return;
  }
  spec.options.offload_period = static_cast<OffloadPeriod>(bits >> 1 & 1U);
  if (spec.policy == "plain-1") {
    spec.offload_optimizer.all = (bits & 4U) != 0;
    spec.offload_optimizer.bytes = Bytes((bits & 4U) != 0 ? 0 : 1000);
    return;
  }
  if (spec.options.stage != 3) {
    return;
  }
  spec.passes = {"offload_adam_states_for_init", "zero3_compile", "offload_adam_states"};
  if ((bits & 4U) != 0) {
    spec.passes = {"zero3_compile", "offload_adam_states_sync"};
  }
  if ((bits & 8U) != 0) {
    spec.passes->push_back((bits & 16U) != 0 ? "fuse_gathers" : "overlap_gathers");
  }
}

}  // namespace

PlanSpec SpecOf(std::uint64_t bits) {
  const auto take = [&bits](std::uint64_t count) {
    const std::uint64_t value = bits % count;
    bits /= count;
    return value;
  };
  PlanSpec spec;
  ScheduleOptions& options = spec.options;
  options.stage = static_cast<int>(1 + take(3));
  options.gradient_accumulation_steps = static_cast<int>(1 + take(3));
  constexpr std::int64_t kBuckets[] = {1, 100, 10'000, 1'000'000};
  options.reduce_bucket = kBuckets[take(4)];
  options.double_buffer = take(2) == 0;
  options.reduce_collective = static_cast<ReduceCollective>(take(2));
  options.flush_collectives = static_cast<FlushCollectives>(take(2));
  options.communicators = static_cast<int>(1 + take(2));
  options.release = static_cast<ReleaseMode>(take(2));
  options.optimizer = static_cast<OptimizerKernels>(take(3));
  options.allocator = static_cast<AllocatorMode>(take(2));
  if (take(2) == 0) {
    options.gradient_clipping = 1.0;
  }
  if (options.stage == 3) {
    spec.gather_ahead = static_cast<std::int64_t>(take(4));
    spec.keep_gathered.all = take(4) == 0;
  }
  options.buffer_lifetime = static_cast<BufferLifetime>(take(3));
  if (take(3) == 1) {
    spec.policy = take(2) == 0 ? "deepcompile-0.19.6" : "deepcompile-0.19.8";
    spec.gather_ahead = 0;
    spec.keep_gathered = {};
  } else {
    options.gradient_reduction = static_cast<GradientReduction>(take(2));
    if (take(2) == 1) {
      options.gradient_buckets = GradientBuckets::kEager;
      options.contiguous_gradients = take(2) == 0;
      options.flatten = static_cast<Flatten>(take(2));
      options.buffer_lifetime = BufferLifetime::kStep;
      options.flush_collectives = FlushCollectives::kPerParameter;
      options.reduce_collective = ReduceCollective::kAllReduce;
      if (spec.gather_ahead == 0 && !spec.keep_gathered.all) {
        spec.policy = "deepspeed-eager";
      }
    }
  }
  AddPasses(take(32), spec);
  return spec;
}

void ExerciseGraphText(const Graph& graph) {
  const std::string text = PrintGraph(graph);
  DCSIM_CHECK(PrintGraph(ParseGraph(text, "printed")) == text);
}

void ExercisePlanText(const Plan& plan, const Graph& graph) {
  const Json printed = PrintPlan(plan, graph);
  DCSIM_CHECK(ReadPlan(printed, graph, PointerLocator("printed")) == plan);
  printed.dump();
}

}  // namespace dcsim
