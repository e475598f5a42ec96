// Executed schedules against the reference training (TrainReference).

#include <gtest/gtest.h>

#include <ATen/ops/equal.h>

#include "tests/exec/support/exact_adamw.h"
#include "tests/exec/support/host_training.h"
#include "tests/support/row_name.h"
#include "tests/support/workloads.h"

namespace dcsim::exec {
namespace {

constexpr int kSteps = 3;
constexpr double kUnit = 0x1p-24;  // relative error of one rounding to float32

struct JobRow {
  std::string name;
  int stage;
  int ranks;
  int accumulation;
};

std::vector<JobRow> AllJobs() {
  std::vector<JobRow> rows;
  for (const int stage : {1, 2, 3}) {
    for (const int ranks : {1, 2, 3, 4}) {
      for (const int accumulation : {1, 4}) {
        rows.push_back({"Zero" + std::to_string(stage) + "_" + std::to_string(ranks) + "Ranks_" +
                            std::to_string(accumulation) + "MicroSteps",
                        stage, ranks, accumulation});
      }
    }
  }
  return rows;
}

/// tiny-llama has 36330 float32 elements in 30 parameters, all of them multiples of 35 that divide
/// neither by 3 nor by 4. One bucket holds their gradients.
PlanSpec SpecOf(const JobRow& row) {
  PlanSpec spec;
  spec.options.stage = row.stage;
  spec.options.gradient_accumulation_steps = row.accumulation;
  spec.options.reduce_bucket = 40'000;
  return spec;
}

double RelativeError(const at::Tensor& actual, const at::Tensor& expected) {
  const at::Tensor whole = expected.reshape(-1).to(at::kDouble);
  return actual.to(at::kDouble).sub(whole).norm().item<double>() / whole.norm().item<double>();
}

class ReferenceMatchTest : public testing::TestWithParam<JobRow> {
 protected:
  const Graph graph_ = WorkloadGraph("tiny-llama");
  const PlanSpec spec_ = SpecOf(GetParam());
  const std::vector<TrainedStep> trained_ = TrainOnHost({graph_, spec_, GetParam().ranks}, kSteps);
};

// Each rank's own sums are made in the reference's order. What differs is the order in which ranks
// and micro-steps are added, at most 7 roundings, and one where the division by 3 comes before the
// sum. Weights then differ by roundings, which the next forward and backward carry on: 32 units, as
// between recorded and eager training (tests/recorder/test_reference.py).
TEST_P(ReferenceMatchTest, LossesAndGradientsAreThoseOfTheReference) {
  const auto expected = TrainReference({graph_, spec_, GetParam().ranks}, kSteps);
  for (std::size_t step = 0; step < trained_.size(); ++step) {
    for (std::size_t rank = 0; rank < expected[step].losses.size(); ++rank) {
      for (std::size_t m = 0; m < expected[step].losses[rank].size(); ++m) {
        const double loss = expected[step].losses[rank][m];
        EXPECT_NEAR(trained_[step].losses[rank].at(m), loss, 8 * kUnit * loss) << step << rank << m;
      }
    }
    for (std::size_t i = 0; i < graph_.params.size(); ++i) {
      EXPECT_LE(RelativeError(trained_[step].gradients[i], expected[step].gradients[i]), 32 * kUnit)
          << "step " << step << ", " << graph_.params[i].name;
    }
  }
}

/// Jobs that divide by 1, 2 or 4, which is exact, and in which ZeRO adds in the reference's order
/// (ranks last): one micro-step, one rank, or ZeRO-1, which keeps whole gradients until the last.
std::vector<JobRow> JobsInTheSameOrder() {
  std::vector<JobRow> rows;
  for (const JobRow& row : AllJobs()) {
    if (row.ranks != 3 && (row.stage == 1 || row.accumulation == 1 || row.ranks == 1)) {
      rows.push_back(row);
    }
  }
  return rows;
}

class FirstStepTest : public testing::TestWithParam<JobRow> {};

// Later steps may differ by roundings: AdamW's fused CPU kernel rounds differently at the end of a
// tensor, so its result depends on where a parameter lies.
TEST_P(FirstStepTest, IsEqualBitForBit) {
  const Graph graph = WorkloadGraph("tiny-llama");
  const PlanSpec spec = SpecOf(GetParam());
  const HostJob job{graph, spec, GetParam().ranks};
  const auto actual = TrainOnHost(job, 1).front();
  const auto expected = TrainReference(job, 1).front();
  EXPECT_EQ(actual.losses, expected.losses);
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    EXPECT_TRUE(at::equal(actual.gradients[i], expected.gradients[i].reshape(-1)))
        << graph.params[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, FirstStepTest, testing::ValuesIn(JobsInTheSameOrder()), RowName());

// Weights of at most 1 are rounded twice a step; an update of about 1e-4 has ten roundings of its
// own, which is less than half a unit.
TEST_P(ReferenceMatchTest, WeightsAreAdamWOfTheGradients) {
  for (std::size_t i = 0; i < graph_.params.size(); ++i) {
    ExactAdamW exact(WholeParam(graph_, ParamId(i)));
    for (int step = 0; step < kSteps; ++step) {
      const TrainedStep& trained = trained_[static_cast<std::size_t>(step)];
      exact.Step(trained.gradients[i], step + 1);
      const at::Tensor error = trained.masters[i].to(at::kDouble).sub(exact.weights()).abs();
      EXPECT_LE(error.max().item<double>(), 3 * kUnit * (step + 1)) << graph_.params[i].name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, ReferenceMatchTest, testing::ValuesIn(AllJobs()), RowName());

}  // namespace
}  // namespace dcsim::exec
