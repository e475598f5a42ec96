// Variants of the optimizer step against AdamW in float64.

#include <cmath>

#include <gtest/gtest.h>

#include "tests/exec/support/exact_adamw.h"
#include "tests/exec/support/host_training.h"
#include "tests/support/row_name.h"
#include "tests/support/workloads.h"

namespace dcsim::exec {
namespace {

constexpr int kSteps = 3;
constexpr double kUnit = 0x1p-24;

struct OptimizerRow {
  std::string name;
  int stage;
  OptimizerKernels kernels;
  std::optional<double> clipping;
};

std::vector<OptimizerRow> Rows() {
  std::vector<OptimizerRow> rows;
  for (const int stage : {1, 2, 3}) {
    const std::string zero = "Zero" + std::to_string(stage);
    rows.push_back({zero + "Fused", stage, OptimizerKernels::kFused, std::nullopt});
    rows.push_back({zero + "Foreach", stage, OptimizerKernels::kForeach, std::nullopt});
    rows.push_back({zero + "ForLoop", stage, OptimizerKernels::kForLoop, std::nullopt});
    // Gradients of norm about 1 are made so small that AdamW's epsilon, 1e-8, matters.
    rows.push_back({zero + "Clipped", stage, OptimizerKernels::kFused, 1e-4});
  }
  return rows;
}

double SquaredNorm(const TrainedStep& step) {
  double sum = 0;
  for (const at::Tensor& gradient : step.gradients) {
    sum += gradient.to(at::kDouble).square().sum().item<double>();
  }
  return sum;
}

/// torch.nn.utils.clip_grad_norm_'s factor: at most 1.
double ClippingFactor(const TrainedStep& step, const std::optional<double>& allowed) {
  return allowed ? std::min(1.0, *allowed / (std::sqrt(SquaredNorm(step)) + 1e-6)) : 1.0;
}

class OptimizerTest : public testing::TestWithParam<OptimizerRow> {
 protected:
  static PlanSpec Spec() {
    PlanSpec spec;
    spec.options.stage = GetParam().stage;
    spec.options.reduce_bucket = 40'000;
    spec.options.optimizer = GetParam().kernels;
    spec.options.gradient_clipping = GetParam().clipping;
    return spec;
  }
};

// Weights of at most 1 are rounded up to three times a step; an update of 1e-4 has some ten
// roundings of its own, less than half a unit. Partitions of three ranks cut through parameters,
// and the norm is that of all of them.
TEST_P(OptimizerTest, IsAdamW) {
  const Graph graph = WorkloadGraph("tiny-llama");
  const PlanSpec spec = Spec();
  const auto trained = TrainOnHost({graph, spec, /*ranks=*/3}, kSteps);
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    ExactAdamW exact(WholeParam(graph, ParamId(i)));
    for (int step = 0; step < kSteps; ++step) {
      const TrainedStep& actual = trained[static_cast<std::size_t>(step)];
      const double factor = ClippingFactor(actual, GetParam().clipping);
      exact.Step(actual.gradients[i].to(at::kDouble).mul(factor), step + 1);
      const at::Tensor error = actual.masters[i].to(at::kDouble).sub(exact.weights()).abs();
      EXPECT_LE(error.max().item<double>(), 3 * kUnit * (step + 1)) << graph.params[i].name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, OptimizerTest, testing::ValuesIn(Rows()), RowName());

}  // namespace
}  // namespace dcsim::exec
