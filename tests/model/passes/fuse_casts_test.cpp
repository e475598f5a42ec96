// Which casts FuseCasts takes, and what schedules do with them: small graphs by hand, and a network
// recorded under autocast over float32 parameters (tests/data/training/autocast).

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"
#include "model/graph/fused_casts.h"
#include "model/graph/sharding.h"
#include "model/ir/graph_text.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "model/passes/verify.h"
#include "tests/support/row_name.h"
#include "tests/support/workloads.h"

namespace dcsim {
namespace {

/// A graph whose "_to_copy" ops have the argument that the text form leaves out: the dtype.
Graph WithCasts(const std::string& text) {
  Graph graph = ParseGraphText(text);
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    Op& op = graph.ops[i];
    if (graph.target(OpId(i)).starts_with("aten::_to_copy")) {
      const ValueId made = op.outputs.front();
      const DType dtype = made.is_none() ? DType::kBFloat16 : graph.value(made).dtype;
      op.arguments = {op.inputs.front(), dtype, {}, {}, {}, false};
    }
  }
  return graph;
}

struct CastRow {
  std::string name;
  bool fused;
  std::string text;
};

std::string OneGraph(const std::string& ops, const std::string& ends = "") {
  return "graph one 1 tokens\nparam w float32[2,2]\ninput x bfloat16[2,2]\nforward\n" + ops +
         "\n  l: bfloat16[] = aten::sum(y)\n  loss l\n" + ends;
}

std::vector<CastRow> Rows() {
  const std::string cast = "c: bfloat16[2,2] = aten::_to_copy(w)\n";
  const std::string product = "y: bfloat16[2,2] = aten::mm(x, c)\n";
  const std::string backward =
      "save x\nbackward of 0\ntangent t: bfloat16[] of l\n"
      "e: bfloat16[2,2] = aten::expand(t)\n";
  return {
      {"ReadThroughOneCast", true, OneGraph(cast + product)},
      {"ItsViewMayBeUsed", true,
       OneGraph(cast + "v: bfloat16[2,2] views c = aten::t(c)\ny: bfloat16[2,2] = aten::mm(x, v)")},
      {"SavedForTheBackward", true, OneGraph(cast + product, "save c\n")},
      {"CastAgainInTheBackward", true,
       OneGraph(
           cast + product,
           backward + "d: bfloat16[2,2] = aten::_to_copy(w)\nf: bfloat16[2,2] = aten::mm(e, d)")},
      {"ToAnotherDTypeInTheBackward", false,
       OneGraph(
           cast + product,
           backward + "d: float16[2,2] = aten::_to_copy(w)\nf: bfloat16[2,2] = aten::mm(e, d)")},
      {"ReadOtherwiseInTheBackward", false,
       OneGraph(cast + product, backward + "f: bfloat16[2,2] = aten::mm(e, w)")},
      {"ReadByAnotherOp", false, OneGraph(cast + "y: bfloat16[2,2] = aten::mm(w, c)")},
      {"CastTwiceInOneGraph", false,
       OneGraph(cast + "d: bfloat16[2,2] = aten::_to_copy(w)\ny: bfloat16[2,2] = aten::mm(d, c)")},
      {"AViewIsCast", false,
       OneGraph("v: float32[2,2] views w = aten::t(w)\nc: bfloat16[2,2] = aten::_to_copy(v)\n" +
                product)},
      {"ToAWiderDType", false, OneGraph("c: float64[2,2] = aten::_to_copy(w)\n" + product)},
      {"TheCallerGetsTheResult", false, OneGraph(cast + product, "output c as cast\n")},
      {"NobodyTakesTheResult", false,
       OneGraph("_ = aten::_to_copy(w)\ny: bfloat16[2,2] = aten::mm(x, x)")},
      {"NotCastAtAll", false, OneGraph("y: bfloat16[2,2] = aten::mm(x, w)")},
  };
}

class FuseCastsTest : public testing::TestWithParam<CastRow> {};

TEST_P(FuseCastsTest, AParameterReadThroughOneCastAloneIsGatheredInItsDType) {
  const Graph graph = WithCasts(GetParam().text);
  const Graph fused = FuseCasts(graph);
  const ParamId w(0);
  EXPECT_EQ(fused.gather_dtype(w), GetParam().fused ? DType::kBFloat16 : DType::kFloat32);
  EXPECT_EQ(fused.dtype(w), DType::kFloat32);
  const StepFacts facts = AnalyseStep(fused);
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const bool cast = graph.target(OpId(i)).starts_with("aten::_to_copy");
    EXPECT_EQ(IsFusedCast(fused, facts, OpId(i)), cast && GetParam().fused) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, FuseCastsTest, testing::ValuesIn(Rows()), RowName());

// A cast that also moves or copies is none that a gather can do.
TEST(FuseCastsRulesTest, ACastWithFurtherArgumentsStays) {
  for (const Argument& more : {Argument(true), Argument(DeviceArgument()),
                               Argument(MemoryFormatArgument{"contiguous_format"})}) {
    Graph graph = WithCasts(Rows().front().text);
    graph.ops.front().arguments.push_back(more);
    EXPECT_EQ(FuseCasts(graph).gather_dtype(ParamId(0)), DType::kFloat32);
  }
}

// Half of a float32 parameter's bytes, and its own where nothing is fused: 2 ranks, 4 elements.
TEST(FuseCastsRulesTest, GatheredBytesAreThoseOfTheCastDType) {
  const Graph graph = WithCasts(Rows().front().text);
  EXPECT_EQ(GatheredBytes(graph, ParamId(0), 2), Bytes(16));
  EXPECT_EQ(GatheredBytes(FuseCasts(graph), ParamId(0), 2), Bytes(8));
}

class FusedScheduleTest : public testing::Test {
 protected:
  static PlanSpec Spec(const std::string& policy, bool fuse) {
    PlanSpec spec;
    spec.policy = policy;
    spec.options.fuse_casts = fuse;
    return spec;
  }

  Schedule LowerStep(const PlanSpec& spec) const {
    Schedule schedule = Lower(Resolve(spec, graph, 2), graph, nullptr, {});
    EXPECT_THAT(Verify(schedule, graph), testing::IsEmpty());
    return schedule;
  }

  static std::size_t Count(const Schedule& schedule, TaskKind kind) {
    const auto tasks = schedule.tasks();
    return static_cast<std::size_t>(std::count_if(
        tasks.begin(), tasks.end(), [&](const Task& task) { return task.kind == kind; }));
  }

  Graph graph = TrainingGraph("autocast");
};

// The network casts weight and bias of both layers and the head's weight in the forward, the three
// weights again in the backward; embedding and layer norms compute in float32. Each of the eight
// gathers moves half the bytes, behind a cast of the shard, and the eight casts of whole parameters
// are gone.
TEST_F(FusedScheduleTest, CastsOfShardsReplaceCastsOfParameters) {
  const Schedule plain = LowerStep(Spec("plain-1", false));
  const Schedule fused = LowerStep(Spec("plain-1", true));
  EXPECT_EQ(Count(plain, TaskKind::kCastShard), 0U);
  EXPECT_EQ(Count(fused, TaskKind::kCastShard), 8U);
  EXPECT_EQ(Count(fused, TaskKind::kCompute), Count(plain, TaskKind::kCompute) - 8);
  const std::set<std::string> cast = {"layers.0.weight", "layers.0.bias", "layers.1.weight",
                                      "layers.1.bias", "head.weight"};
  for (std::size_t i = 0; i < fused.task_count(); ++i) {
    const TaskId id(i);
    if (fused.task(id).kind != TaskKind::kAllGather) {
      continue;
    }
    const Collective& gather = *fused.FindCollective(id);
    const std::string& name = graph.param(gather.calls.front().param).name;
    EXPECT_EQ(gather.dtype, cast.contains(name) ? DType::kBFloat16 : DType::kFloat32) << name;
  }
}

// Every way that a gathered parameter may live: kept, released by event order or by record_stream,
// its shard on the host, gathers fused and ahead, several micro-steps.
TEST_F(FusedScheduleTest, SchedulesAreCorrectWithEveryOptionOfGathers) {
  const std::vector<void (*)(PlanSpec&)> changes = {
      [](PlanSpec& spec) { spec.keep_gathered.all = true; },
      [](PlanSpec& spec) { spec.gather_ahead = 3; },
      [](PlanSpec& spec) { spec.options.release = ReleaseMode::kRecordStream; },
      [](PlanSpec& spec) { spec.options.offload_parameters = true; },
      [](PlanSpec& spec) { spec.options.gradient_accumulation_steps = 2; },
      [](PlanSpec& spec) {
        spec.passes = {"gather_at_use", "fuse_gathers"};
      },
      [](PlanSpec& spec) { spec.options.communicators = 2; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    PlanSpec spec = Spec("plain-1", true);
    changes[i](spec);
    EXPECT_GT(Count(LowerStep(spec), TaskKind::kCastShard), 0U) << i;
  }
}

// A kept parameter is kept in the dtype that it is gathered in.
TEST_F(FusedScheduleTest, KeptParametersTakeTheBytesOfTheCastDType) {
  const auto kept_bytes = [&](bool fuse) {
    PlanSpec spec = Spec("plain-1", fuse);
    spec.keep_gathered.patterns = {"head.weight"};
    const Schedule schedule = LowerStep(spec);
    std::int64_t bytes = 0;
    for (const BufferId id : schedule.residents()) {
      const Buffer& buffer = schedule.buffer(id);
      bytes += buffer.buffer_class == BufferClass::kGatheredParameter ? buffer.bytes.count() : 0;
    }
    return bytes;
  };
  EXPECT_EQ(kept_bytes(false), 2 * kept_bytes(true));
}

// DeepSpeed fuses since PR #7588 (0.19.x), but its prefetch brings every parameter in its own
// dtype.
TEST_F(FusedScheduleTest, DeepCompileFusesWhereNothingIsPrefetched) {
  for (const char* policy : {"deepcompile-0.19.6", "deepcompile-0.19.8"}) {
    PlanSpec spec = Spec(policy, false);
    EXPECT_EQ(Count(LowerStep(spec), TaskKind::kCastShard), 0U) << policy;
    spec.passes = {"zero3_compile"};
    EXPECT_EQ(Count(LowerStep(spec), TaskKind::kCastShard), 8U) << policy;
    EXPECT_EQ(Count(LowerStep(Spec(policy, true)), TaskKind::kCastShard), 8U) << policy;
  }
  PlanSpec spec = Spec("deepcompile-0.17.1", false);
  spec.options.gradient_reduction = GradientReduction::kEachMicroStep;
  spec.passes = {"zero3_compile"};
  EXPECT_EQ(Count(LowerStep(spec), TaskKind::kCastShard), 0U);
}

TEST_F(FusedScheduleTest, OtherStagesAndCopyEnginesAreRefused) {
  const auto fault = [&](void (*change)(ScheduleOptions&)) -> std::string {
    PlanSpec spec = Spec("plain-1", true);
    change(spec.options);
    try {
      Resolve(spec, graph, 2);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string expected = "fuse_casts is for stage 3 and gather_engine nccl";
  EXPECT_THAT(fault([](ScheduleOptions& options) { options.stage = 1; }),
              testing::HasSubstr(expected));
  EXPECT_THAT(fault([](ScheduleOptions& options) { options.gather_engine = Engine::kCopyEngine; }),
              testing::HasSubstr(expected));
}

}  // namespace
}  // namespace dcsim
