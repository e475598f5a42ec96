// Schedules of FSDP2, executed and held against ZeRO-3's. Two ranks compute the same bits: halves
// are exact, whether gradients are halved before they are added or behind. Three differ in
// rounding.

#include <gtest/gtest.h>

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>

#include "exec/executor/executable.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "tests/exec/support/host_training.h"
#include "tests/support/row_name.h"
#include "tests/support/workloads.h"

namespace dcsim::exec {
namespace {

constexpr int kSteps = 2;

struct FsdpRow {
  std::string name;
  Graph (*graph)();
  int ranks = 2;
  int micro_steps = 1;
  std::function<void(PlanSpec&)> change = [](PlanSpec&) {};
};

Graph TinyLlama() {
  return WorkloadGraph("tiny-llama");
}
Graph Halves() {
  return TrainingGraph("bfloat16");
}
Graph Frozen() {
  return TrainingGraph("frozen");
}
Graph Adapters() {
  return TrainingGraph("adapters");
}
Graph Autocast() {
  return TrainingGraph("autocast");
}

PlanSpec FsdpSpec(const FsdpRow& row) {
  PlanSpec spec;
  spec.policy = "fsdp";
  spec.options.gradient_accumulation_steps = row.micro_steps;
  spec.options.sharding = Sharding::kFsdp2;
  spec.options.optimizer = OptimizerKernels::kForLoop;
  row.change(spec);
  return spec;
}

PlanSpec ZeroSpec(const FsdpRow& row) {
  PlanSpec spec;
  spec.options.gradient_accumulation_steps = row.micro_steps;
  spec.options.reduce_bucket = 40'000;
  spec.options.optimizer = OptimizerKernels::kForLoop;
  return spec;
}

class FsdpTest : public testing::TestWithParam<FsdpRow> {};

TEST_P(FsdpTest, TrainsAsZero3Does) {
  const FsdpRow& row = GetParam();
  const Graph graph = row.graph();
  const auto trained = TrainOnHost({graph, FsdpSpec(row), row.ranks}, kSteps);
  const auto expected = TrainOnHost({graph, ZeroSpec(row), row.ranks}, kSteps);
  const bool exact = row.ranks < 3;
  for (std::size_t step = 0; step < expected.size(); ++step) {
    for (std::size_t i = 0; i < graph.params.size(); ++i) {
      if (!graph.params[i].requires_grad) {
        continue;
      }
      const at::Tensor& master = trained[step].masters[i];
      EXPECT_TRUE(exact ? at::equal(master, expected[step].masters[i])
                        : at::allclose(master, expected[step].masters[i], 1e-4, 1e-5))
          << "step " << step << ", " << graph.params[i].name;
      EXPECT_TRUE(
          exact ? at::equal(trained[step].gradients[i], expected[step].gradients[i])
                : at::allclose(trained[step].gradients[i], expected[step].gradients[i], 1e-4, 1e-6))
          << "step " << step << ", gradient of " << graph.params[i].name;
    }
    if (exact) {
      EXPECT_EQ(trained[step].losses, expected[step].losses) << "step " << step;
    }
  }
}

void NeverReshard(PlanSpec& spec) {
  spec.fsdp_groups.reshard_after_forward = ReshardAfterForward::kNever;
}
void ReshardAll(PlanSpec& spec) {
  spec.fsdp_groups.reshard_after_forward = ReshardAfterForward::kAll;
}
void WrapProjections(PlanSpec& spec) {
  spec.fsdp_groups.wrap = {"model.layers.*.mlp"};
}

INSTANTIATE_TEST_SUITE_P(Jobs,
                         FsdpTest,
                         testing::Values(FsdpRow{"OneRank", TinyLlama, 1},
                                         FsdpRow{"TwoRanks", TinyLlama},
                                         FsdpRow{"ThreeRanks", TinyLlama, 3},
                                         FsdpRow{"Accumulation", TinyLlama, 2, 3},
                                         FsdpRow{"NeverResharded", TinyLlama, 2, 2, NeverReshard},
                                         FsdpRow{"AllResharded", TinyLlama, 2, 2, ReshardAll},
                                         FsdpRow{"Wrapped", TinyLlama, 2, 1, WrapProjections},
                                         FsdpRow{"Halves", Halves, 2, 1},
                                         FsdpRow{"HalvesOfOneRank", Halves, 1},
                                         FsdpRow{"Frozen", Frozen},
                                         FsdpRow{"Adapters", Adapters, 2, 2},
                                         FsdpRow{"Autocast", Autocast}),
                         RowName());

// The fused kernel has the same tensors to update, a parameter each.
TEST(FsdpOptimizerTest, FusedKernelUpdatesAsPassesDo) {
  const Graph graph = TinyLlama();
  FsdpRow row{"", TinyLlama};
  const auto passes = TrainOnHost({graph, FsdpSpec(row), 2}, kSteps);
  row.change = [](PlanSpec& spec) { spec.options.optimizer = OptimizerKernels::kFused; };
  const auto fused = TrainOnHost({graph, FsdpSpec(row), 2}, kSteps);
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    EXPECT_TRUE(at::allclose(fused.back().masters[i], passes.back().masters[i], 1e-5, 1e-6))
        << graph.params[i].name;
  }
}

TEST(FsdpExecutableTest, WhatIsNotExecutedIsNamed) {
  FsdpRow row{"", TinyLlama};
  row.change = [](PlanSpec& spec) { spec.options.optimizer = OptimizerKernels::kForeach; };
  EXPECT_EQ(FindUnexecutable(FsdpSpec(row).options),
            "optimizer foreach: of policy fsdp, dc-run executes fused and for_loop");
  EXPECT_EQ(FindUnexecutable(FsdpSpec({"", TinyLlama}).options), "");
}

}  // namespace
}  // namespace dcsim::exec
