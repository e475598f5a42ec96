// Frozen parameters, adapters beside frozen layers, autocast over float32 parameters
// (tests/data/training) as schedules of two ranks: what is gathered, reduced and kept.

#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "model/passes/verify.h"
#include "tests/support/row_name.h"
#include "tests/support/workloads.h"

namespace dcsim {
namespace {

using Names = std::set<std::string>;

struct TrainingRow {
  std::string name;
  Names frozen;
  Names backward;  // parameters that the backward reads
};

/// A layer norm's backward reads weight and bias, a linear layer's the weight, an embedding's
/// neither; and it ends where nothing further ahead is trained.
std::vector<TrainingRow> Rows() {
  const Names norms = {"norms.0.weight", "norms.0.bias", "norms.1.weight", "norms.1.bias"};
  Names products = norms;
  products.insert({"layers.0.weight", "layers.1.weight", "head.weight"});
  return {{"frozen", {"embed.weight", "head.weight"}, products},
          {"adapters",
           {"embed.weight", "norms.0.weight", "norms.0.bias", "norms.1.weight", "norms.1.bias",
            "layers.0.base.weight", "layers.0.base.bias", "layers.1.base.weight",
            "layers.1.base.bias", "head.weight"},
           {"norms.1.weight", "norms.1.bias", "layers.0.up.weight", "layers.1.base.weight",
            "layers.1.down.weight", "layers.1.up.weight", "head.weight"}},
          {"autocast", {}, products}};
}

class EverydayTrainingTest : public testing::TestWithParam<TrainingRow> {
 protected:
  Schedule LowerStep(const std::string& policy, int stage) const {
    PlanSpec spec;
    spec.policy = policy;
    spec.options.stage = stage;
    if (policy == "deepspeed-eager") {
      spec.options.gradient_buckets = GradientBuckets::kEager;
      spec.eager_gathers.persistence_threshold = 0;
    }
    Schedule schedule = Lower(Resolve(spec, graph, 2), graph, nullptr, {});
    EXPECT_THAT(Verify(schedule, graph), testing::IsEmpty());
    return schedule;
  }

  Names All(bool trained_alone) const {
    Names names;
    for (const Param& param : graph.params) {
      if (!trained_alone || param.requires_grad) {
        names.insert(param.name);
      }
    }
    return names;
  }

  /// Parameters in the calls of one kind of collective, forward or backward.
  Names Called(const Schedule& schedule, TaskKind kind, bool in_backward) const {
    Names names;
    bool backward = false;
    for (std::size_t i = 0; i < schedule.task_count(); ++i) {
      const TaskKind task = schedule.task(TaskId(i)).kind;
      backward = backward || task == TaskKind::kSetTangents;
      if (task == kind && backward == in_backward) {
        for (const CollectiveCall& call : schedule.FindCollective(TaskId(i))->calls) {
          names.insert(graph.param(call.param).name);
        }
      }
    }
    return names;
  }

  Graph graph = TrainingGraph(GetParam().name);
};

TEST_P(EverydayTrainingTest, TheRestOfTheParametersIsTrained) {
  Names frozen;
  for (const Param& param : graph.params) {
    if (!param.requires_grad) {
      frozen.insert(param.name);
    }
  }
  EXPECT_EQ(frozen, GetParam().frozen);
}

TEST_P(EverydayTrainingTest, ParametersAreGatheredWhereAGraphReadsThem) {
  for (const char* policy :
       {"plain-1", "deepcompile-0.17.1", "deepcompile-0.19.6", "deepcompile-0.19.8"}) {
    const Schedule schedule = LowerStep(policy, 3);
    EXPECT_EQ(Called(schedule, TaskKind::kAllGather, false), All(/*trained_alone=*/false));
    EXPECT_EQ(Called(schedule, TaskKind::kAllGather, true), GetParam().backward) << policy;
  }
}

TEST_P(EverydayTrainingTest, GradientsOfTrainedParametersAloneAreReduced) {
  for (const int stage : {1, 2, 3}) {
    for (const char* policy : {"plain-1", "deepcompile-0.19.8", "deepspeed-eager"}) {
      EXPECT_EQ(Called(LowerStep(policy, stage), TaskKind::kReduce, true),
                All(/*trained_alone=*/true))
          << policy << ", stage " << stage;
    }
  }
}

// A rank keeps master weights and both moments in float32 for its half of what is trained: ZeRO-3
// of each parameter, one element more where their number is odd, ZeRO-1 and 2 of all together,
// padded to a multiple of 4. AdamW's step count has 4 bytes beside the moments.
TEST_P(EverydayTrainingTest, OptimizerStatesAreThoseOfTrainedParameters) {
  for (const int stage : {1, 2, 3}) {
    std::int64_t partition = 0;
    for (const Param& param : graph.params) {
      const std::int64_t numel = graph.value(param.value).numel();
      if (param.requires_grad) {
        partition += stage == 3 ? (numel + 1) / 2 * 2 : numel;
      }
    }
    partition = stage == 3 ? partition / 2 : (partition + 3) / 4 * 2;
    const Schedule schedule = LowerStep("plain-1", stage);
    std::int64_t states = 0;
    std::int64_t masters = 0;
    for (const BufferId id : schedule.residents()) {
      const Buffer& buffer = schedule.buffer(id);
      const std::int64_t bytes = buffer.bytes.count();
      states += buffer.buffer_class == BufferClass::kOptimizerState ? bytes : 0;
      masters += buffer.buffer_class == BufferClass::kMaster ? bytes : 0;
    }
    EXPECT_EQ(masters, 4 * partition) << stage;
    EXPECT_EQ(states, 8 * partition + 4) << stage;
  }
}

INSTANTIATE_TEST_SUITE_P(Recorded, EverydayTrainingTest, testing::ValuesIn(Rows()), RowName());

}  // namespace
}  // namespace dcsim
