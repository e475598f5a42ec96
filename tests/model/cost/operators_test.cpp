#include "model/cost/operators.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/cost/kernel_traits.h"
#include "model/graph/step_facts.h"
#include "tests/model/cost/gpu_with_kernels.h"
#include "tests/support/workloads.h"

namespace dcsim {
namespace {

TEST(OperatorsTest, AreThoseOfTheProfiledWorkloads) {
  std::set<std::string> missing;
  for (const std::string& name : ProfiledWorkloadNames()) {
    const Graph graph = WorkloadGraph(name);
    const StepFacts facts = AnalyseStep(graph);
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
      if (!facts.is_view[i] && FindOperator(graph.target(OpId(i))) == nullptr) {
        missing.emplace(graph.target(OpId(i)));
      }
    }
  }
  EXPECT_THAT(missing, testing::IsEmpty());
}

TEST(OperatorsTest, OthersAreNot) {
  EXPECT_EQ(FindOperator("aten::cudnn_batch_norm"), nullptr);
  EXPECT_EQ(FindOperator("my::op"), nullptr);
}

OpLaunches Launches(const Graph& graph) {
  return TraitsOf(graph, MakerOf(graph)).launches;
}

TEST(OperatorsTest, ProductsTakeLongerThanElementwiseOps) {
  const std::string square = "bfloat16[8,8]";
  EXPECT_EQ(Launches(OneOp("input a " + square, "y: " + square + " = aten::mul.Tensor(a, a)")).host,
            1);
  EXPECT_EQ(Launches(OneOp("input a " + square, "y: " + square + " = aten::mm(a, a)")).host, 1.9);
}

// Up to 3,072 indices are added one after the other, more are sorted by many kernels.
TEST(OperatorsTest, SortingIndicesIsManyLaunches) {
  const auto embedding = [](const std::string& words) {
    return OneOp("input g bfloat16[" + words + ",8]\ninput i int64[" + words + "]",
                 "y: bfloat16[100,8] = aten::embedding_dense_backward(g, i)");
  };
  EXPECT_EQ(Launches(embedding("3072")).host, 3);
  EXPECT_EQ(Launches(embedding("3073")).kernels, 31);
}

TEST(OperatorsTest, PuttingByIndexSortsWhereItAdds) {
  Graph graph = OneOp("input a float32[10,8]\ninput i int64[100]\ninput v float32[100,8]",
                      "y: float32[10,8] = aten::index_put(a, i, v)");
  EXPECT_EQ(Launches(graph).kernels, 2);
  graph.ops[MakerOf(graph).index()].arguments.emplace_back(true);
  EXPECT_EQ(Launches(graph).kernels, 20);
}

}  // namespace
}  // namespace dcsim
