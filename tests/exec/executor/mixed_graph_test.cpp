// What tiny-llama has none of: two dtypes, frozen parameters, gradients with strides of their own.

#include <gtest/gtest.h>

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "exec/reference/reference_data.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "tests/exec/support/host_training.h"
#include "tests/exec/support/real_graph.h"
#include "tests/support/row_name.h"
#include "tests/support/schedule_edit.h"

namespace dcsim::exec {
namespace {

/// The loss is the sum of x w1 f plus that of y w2. The gradient of w2 is a transposed product.
Graph MixedGraph() {
  Graph graph = ParseRealGraph(R"(
graph mixed 2 tokens
param w1 float32[3,5]
param f float32[5,5] frozen
param w2 bfloat16[5,2]
input x float32[2,3]
input y bfloat16[2,5]
forward
  a: float32[2,5] = aten::mm(x, w1)
  b: float32[2,5] = aten::mm(a, f)
  c: bfloat16[2,2] = aten::mm(y, w2)
  lb: float32[] = aten::sum(b)
  lc: bfloat16[] = aten::sum(c)
  l: float32[] = aten::add.Tensor(lb, lc)
  loss l
  save b
  save c
backward of 0
  tangent t: float32[] of l
  ob: float32[2,5] = aten::ones_like(b)
  gb: float32[2,5] = aten::mul.Tensor(ob, t)
  ft: float32[5,5] views f = aten::t(f)
  ga: float32[2,5] = aten::mm(gb, ft)
  xt: float32[3,2] views x = aten::t(x)
  g1: float32[3,5] = aten::mm(xt, ga)
  oc: bfloat16[2,2] = aten::ones_like(c)
  gc: bfloat16[2,2] = aten::mul.Tensor(oc, t)
  gt: bfloat16[2,5] = aten::mm(gc, y)
  g2: bfloat16[5,2] views gt = aten::t(gt)
  gradient w1 = g1
  gradient w2 = g2
)");
  for (Value& value : graph.values) {
    if (value.name == "g2") {
      value.strides = {1, 5};
    }
  }
  return graph;
}

struct MixedRow {
  std::string name;
  int stage;
  ReduceCollective collective;
};

class MixedGraphTest : public testing::TestWithParam<MixedRow> {
 protected:
  static constexpr int kRanks = 2;
  static constexpr int kSteps = 3;

  static PlanSpec Spec() {
    PlanSpec spec;
    spec.options.stage = GetParam().stage;
    spec.options.reduce_collective = GetParam().collective;
    spec.options.reduce_bucket = 100;
    return spec;
  }

  at::Tensor Input(std::size_t index, int rank, int step) const {
    return ReferenceInput(graph_, index, 0, MicroStepPlace(rank, step, 0));
  }

  /// Weights as the forward of a step sees them: the masters of the step before, in their dtype.
  at::Tensor Weights(std::size_t param, int step) const {
    const Value& value = graph_.value(graph_.params[param].value);
    const at::Tensor flat = step == 0 || param == 1
                                ? WholeParam(graph_, ParamId(param))
                                : trained_[static_cast<std::size_t>(step - 1)].masters[param];
    return flat.view(value.shape).to(param == 2 ? at::kBFloat16 : at::kFloat);
  }

  const Graph graph_ = MixedGraph();
  const PlanSpec spec_ = Spec();
  const std::vector<TrainedStep> trained_ = TrainOnHost({graph_, spec_, kRanks}, kSteps);
};

// The same products in PyTorch, on weights that are the optimizer's results: bit for bit, so the
// updates of both dtypes arrive on all ranks, and the frozen weights stay.
TEST_P(MixedGraphTest, LossesAreThoseOfTheUpdatedWeights) {
  for (int step = 0; step < kSteps; ++step) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const at::Tensor product =
          at::mm(at::mm(Input(0, rank, step), Weights(0, step)), Weights(1, step));
      const at::Tensor other = at::mm(Input(1, rank, step), Weights(2, step));
      const auto expected = product.sum().add(other.sum()).item<double>();
      EXPECT_EQ(trained_[static_cast<std::size_t>(step)].losses[static_cast<std::size_t>(rank)][0],
                expected)
          << "step " << step << ", rank " << rank;
    }
  }
}

// d/dw1 = x^T (1 f^T), d/dw2 = y^T 1, means over ranks; float32 rounds to 2^-24, bfloat16 to 2^-9,
// a few times.
TEST_P(MixedGraphTest, GradientsAreMeansOverRanks) {
  at::Tensor first = at::zeros({3, 5}, at::kDouble);
  at::Tensor second = at::zeros({5, 2}, at::kDouble);
  for (int rank = 0; rank < kRanks; ++rank) {
    const at::Tensor ones = at::ones({2, 5}, at::kDouble);
    first += at::mm(Input(0, rank, 0).t().to(at::kDouble),
                    at::mm(ones, Weights(1, 0).t().to(at::kDouble)));
    second += at::mm(Input(1, rank, 0).t().to(at::kDouble), ones.narrow(1, 0, 2));
  }
  const auto error = [this](std::size_t param, const at::Tensor& expected) {
    return trained_[0]
        .gradients[param]
        .to(at::kDouble)
        .sub(expected.div(kRanks).reshape(-1))
        .abs()
        .max()
        .item<double>();
  };
  EXPECT_LE(error(0, first), 8 * 0x1p-24 * first.abs().max().item<double>());
  EXPECT_LE(error(2, second), 4 * 0x1p-9 * second.abs().max().item<double>());
  EXPECT_FALSE(trained_[0].gradients[1].defined());
}

TEST_P(MixedGraphTest, StridedGradientsAreMadeContiguous) {
  const Schedule schedule = Lower(Resolve(spec_, graph_, kRanks), graph_, nullptr, {});
  EXPECT_FALSE(NthTask(schedule, TaskKind::kMakeContiguous).is_none());
}

std::vector<MixedRow> Rows() {
  return {{"Zero1", 1, ReduceCollective::kAllReduce},
          {"Zero2", 2, ReduceCollective::kAllReduce},
          {"Zero3", 3, ReduceCollective::kAllReduce},
          {"Zero1Scattered", 1, ReduceCollective::kReduceScatter},
          {"Zero2Scattered", 2, ReduceCollective::kReduceScatter}};
}

INSTANTIATE_TEST_SUITE_P(Plans, MixedGraphTest, testing::ValuesIn(Rows()), RowName());

}  // namespace
}  // namespace dcsim::exec
