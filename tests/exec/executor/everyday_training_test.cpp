// Frozen parameters, adapters beside frozen layers, autocast over float32 parameters
// (tests/data/training), executed and held against the reference training.

#include <functional>

#include <gtest/gtest.h>

#include <ATen/ops/equal.h>

#include "tests/exec/support/host_training.h"
#include "tests/support/row_name.h"
#include "tests/support/workloads.h"

namespace dcsim::exec {
namespace {

constexpr int kRanks = 2;
constexpr double kUnit = 0x1p-24;  // relative error of one rounding to float32

struct TrainingRow {
  std::string name;
  std::string workload;
  int stage;
  std::string policy;
  std::function<void(PlanSpec&)> change = [](PlanSpec&) {};
};

/// float32 parameters gathered in the dtype that they are cast to: what is computed stays the same.
std::vector<TrainingRow> FusedCasts() {
  const auto row = [](const std::string& name, const std::string& policy,
                      const std::function<void(PlanSpec&)>& change) {
    return TrainingRow{"autocast_Fused" + name, "autocast", 3, policy, [change](PlanSpec& spec) {
                         spec.options.fuse_casts = true;
                         change(spec);
                       }};
  };
  return {
      row("AtUse", "plain-1", [](PlanSpec&) {}),
      row("Ahead", "plain-1", [](PlanSpec& spec) { spec.gather_ahead = 3; }),
      row("Grouped", "plain-1",
          [](PlanSpec& spec) {
            spec.passes = {"gather_at_use", "fuse_gathers"};
          }),
      row("Kept", "plain-1", [](PlanSpec& spec) { spec.keep_gathered.all = true; }),
      row("Offloaded", "plain-1", [](PlanSpec& spec) { spec.options.offload_parameters = true; }),
      row("RecordStream", "plain-1",
          [](PlanSpec& spec) { spec.options.release = ReleaseMode::kRecordStream; }),
      row("DeepCompile", "deepcompile-0.19.8", [](PlanSpec&) {}),
      row("DeepCompileWithoutPrefetch", "deepcompile-0.19.6",
          [](PlanSpec& spec) { spec.passes = {"zero3_compile"}; }),
      row("Eager", "deepspeed-eager", [](PlanSpec&) {}),
  };
}

/// Parameters of odd size behind the others, frozen ones apart, gradients apart in their buckets.
std::vector<TrainingRow> AlignedTensors() {
  std::vector<TrainingRow> rows;
  for (const std::string workload : {"frozen", "adapters"}) {
    for (const int stage : {1, 2, 3}) {
      const std::string name = workload + "_AlignedZero" + std::to_string(stage);
      const auto align = [](PlanSpec& spec) { spec.options.align_tensors = true; };
      rows.push_back({name, workload, stage, "plain-1", align});
      rows.push_back({name + "_Eager", workload, stage, "deepspeed-eager", align});
      rows.push_back({name + "_Scattered", workload, stage, "plain-1", [](PlanSpec& spec) {
                        spec.options.align_tensors = true;
                        spec.options.reduce_collective = ReduceCollective::kReduceScatter;
                      }});
    }
  }
  return rows;
}

std::vector<TrainingRow> Rows() {
  std::vector<TrainingRow> rows;
  for (const std::string workload : {"frozen", "adapters", "autocast"}) {
    for (const int stage : {1, 2, 3}) {
      const std::string name = workload + "_Zero" + std::to_string(stage);
      rows.push_back({name, workload, stage, "plain-1"});
      rows.push_back({name + "_DeepCompile", workload, stage, "deepcompile-0.19.8"});
      rows.push_back({name + "_Eager", workload, stage, "deepspeed-eager"});
    }
  }
  for (const auto& more : {FusedCasts(), AlignedTensors()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

class EverydayTrainingTest : public testing::TestWithParam<TrainingRow> {
 protected:
  static PlanSpec Spec() {
    PlanSpec spec;
    spec.policy = GetParam().policy;
    spec.options.stage = GetParam().stage;
    spec.options.reduce_bucket = 300;  // of at most 1050 elements
    if (spec.policy == "deepspeed-eager") {
      spec.options.gradient_buckets = GradientBuckets::kEager;
      spec.eager_gathers.persistence_threshold = 20;  // biases and norms stay
    }
    GetParam().change(spec);
    return spec;
  }

  const Graph graph_ = TrainingGraph(GetParam().workload);
  const PlanSpec spec_ = Spec();
  const HostJob job_{graph_, spec_, kRanks};
};

// Two ranks: the mean's division is exact, and one sum has one order.
TEST_P(EverydayTrainingTest, FirstStepIsTheReferencesBitForBit) {
  const auto actual = TrainOnHost(job_, 1).front();
  const auto expected = TrainReference(job_, 1).front();
  EXPECT_EQ(actual.losses, expected.losses);
  for (std::size_t i = 0; i < graph_.params.size(); ++i) {
    const Param& param = graph_.params[i];
    ASSERT_EQ(actual.gradients[i].defined(), param.requires_grad) << param.name;
    ASSERT_EQ(expected.gradients[i].defined(), param.requires_grad) << param.name;
    EXPECT_TRUE(!param.requires_grad ||
                at::equal(actual.gradients[i], expected.gradients[i].reshape(-1)))
        << param.name;
  }
}

// AdamW's kernel rounds differently at a tensor's end, by a unit of float32 a step; where a weight
// is cast, that may turn a rounding to bfloat16 round, 2^-8 of one of the 15 or more terms of a
// product.
TEST_P(EverydayTrainingTest, LaterLossesAreTheReferences) {
  const double error = GetParam().workload == "autocast" ? 0x1p-8 / 15 : 8 * kUnit;
  const auto actual = TrainOnHost(job_, 4);
  const auto expected = TrainReference(job_, 4);
  for (std::size_t step = 0; step < actual.size(); ++step) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      const double loss = expected[step].losses[rank][0];
      EXPECT_NEAR(actual[step].losses[rank][0], loss, error * loss) << step << ", " << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, EverydayTrainingTest, testing::ValuesIn(Rows()), RowName());

}  // namespace
}  // namespace dcsim::exec
