// Compiled graphs: kernels by their stand-ins, in memory that is used again.

#include <gtest/gtest.h>

#include <ATen/ops/allclose.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include "exec/executor/executable.h"
#include "exec/interpreter/op_program.h"
#include "exec/reference/reference_data.h"
#include "model/ir/graph_reader.h"
#include "tests/exec/support/host_training.h"
#include "tests/support/compiled_document.h"
#include "tests/support/error_text.h"

namespace dcsim::exec {
namespace {

constexpr int kRanks = 2;
constexpr int kSteps = 3;

struct Row {
  int stage;
  int micro_steps;
};

class CompiledGraphTest : public testing::TestWithParam<Row> {};

// The loss is the sum of relu(x w); its product, its relu and its gradient share one storage.
TEST_P(CompiledGraphTest, TrainsAsItsOperatorsDo) {
  Json document = CompiledDocument();
  document["backend"]["stages"] = {GetParam().stage};
  const Graph graph = ParseGraph(document.dump(), "small.json");
  PlanSpec spec;
  spec.options.backend = Backend::kInductor;
  spec.options.stage = GetParam().stage;
  spec.options.gradient_accumulation_steps = GetParam().micro_steps;
  spec.options.reduce_bucket = 100;
  const std::vector<TrainedStep> trained = TrainOnHost({graph, spec, kRanks}, kSteps);
  at::Tensor weights = WholeParam(graph, ParamId(0)).view({4, 4});
  for (int step = 0; step < kSteps; ++step) {
    const TrainedStep& done = trained[static_cast<std::size_t>(step)];
    at::Tensor gradient = at::zeros({4, 4});
    for (int rank = 0; rank < kRanks; ++rank) {
      for (int m = 0; m < GetParam().micro_steps; ++m) {
        const at::Tensor x = ReferenceInput(graph, 0, 0, MicroStepPlace(rank, step, m));
        const at::Tensor product = at::mm(x, weights);
        EXPECT_FLOAT_EQ(
            static_cast<float>(
                done.losses[static_cast<std::size_t>(rank)][static_cast<std::size_t>(m)]),
            product.relu().sum().item<float>())
            << "step " << step << ", rank " << rank << ", micro-step " << m;
        gradient.add_(at::mm(x.t(), product.gt(0).to(at::kFloat)));
      }
    }
    gradient.div_(kRanks * GetParam().micro_steps);
    EXPECT_TRUE(at::allclose(done.gradients[0], gradient.view({16}), 1e-5, 1e-6))
        << done.gradients[0] << gradient;
    weights = done.masters[0].view({4, 4});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plans,
    CompiledGraphTest,
    testing::Values(Row{1, 1}, Row{1, 2}, Row{2, 1}, Row{2, 2}, Row{3, 1}, Row{3, 2}),
    [](const testing::TestParamInfo<Row>& row) {
      return "Stage" + std::to_string(row.param.stage) + "Accumulation" +
             std::to_string(row.param.micro_steps);
    });

TEST(CompiledKernelsTest, OneWithoutStandInIsNamed) {
  Json document = CompiledDocument();
  EXPECT_EQ(FindUnexecutable(CompiledGraph()), "");
  document["kernels"][1].erase("computes");
  const Graph graph = ParseGraph(document.dump(), "g.json");
  EXPECT_EQ(FindUnexecutable(graph), "kernel total has no stand-in, by which CPU ranks run it");
  EXPECT_EQ(ErrorText([&] { OpProgram(graph, c10::kCPU); }), "kernel total has no stand-in");
}

}  // namespace
}  // namespace dcsim::exec
