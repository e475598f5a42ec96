// Buffers that the step writes: a batch norm's counters and statistics.

#include <gtest/gtest.h>

#include <ATen/ops/mm.h>

#include "exec/reference/reference_data.h"
#include "tests/exec/support/host_training.h"
#include "tests/exec/support/real_graph.h"

namespace dcsim::exec {
namespace {

constexpr int kRanks = 2;
constexpr int kSteps = 2;
constexpr int kMicroSteps = 2;

/// The loss is the sum of x w and how often a micro-step has counted in its buffer, itself
/// included.
Graph CountingGraph() {
  Graph graph = ParseRealGraph(R"(
graph counting 2 tokens
param w float32[3,5]
buffer count float32[]
input x float32[2,3]
forward
  one: float32[] = aten::ones_like(count)
  counted: float32[] views count = aten::add_.Tensor(count, one)
  a: float32[2,5] = aten::mm(x, w)
  s: float32[] = aten::sum(a)
  l: float32[] = aten::add.Tensor(s, count)
  loss l
  save a
backward of 0
  tangent t: float32[] of l
  o: float32[2,5] = aten::ones_like(a)
  ga: float32[2,5] = aten::mul.Tensor(o, t)
  xt: float32[3,2] views x = aten::t(x)
  gw: float32[3,5] = aten::mm(xt, ga)
  gradient w = gw
)");
  graph.buffers.front().data.assign(sizeof(float), 0);
  return graph;
}

class WrittenBufferTest : public testing::TestWithParam<int> {};

TEST_P(WrittenBufferTest, KeepsItsContentsFromStepToStepOnEveryRank) {
  const Graph graph = CountingGraph();
  PlanSpec spec;
  spec.options.stage = GetParam();
  spec.options.gradient_accumulation_steps = kMicroSteps;
  spec.options.reduce_bucket = 100;
  const std::vector<TrainedStep> trained = TrainOnHost({graph, spec, kRanks}, kSteps);
  at::Tensor weights = WholeParam(graph, ParamId(0));
  for (int step = 0; step < kSteps; ++step) {
    const TrainedStep& done = trained[static_cast<std::size_t>(step)];
    for (int rank = 0; rank < kRanks; ++rank) {
      for (int micro_step = 0; micro_step < kMicroSteps; ++micro_step) {
        const at::Tensor x = ReferenceInput(graph, 0, 0, MicroStepPlace(rank, step, micro_step));
        const at::Tensor sum = at::mm(x, weights.view({3, 5})).sum();
        EXPECT_EQ(done.losses[static_cast<std::size_t>(rank)][static_cast<std::size_t>(micro_step)],
                  sum.add(step * kMicroSteps + micro_step + 1).item<double>())
            << "step " << step << ", rank " << rank << ", micro-step " << micro_step;
      }
    }
    weights = done.masters[0];
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, WrittenBufferTest, testing::Values(1, 2, 3));

}  // namespace
}  // namespace dcsim::exec
