#include "model/graph/step_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"

namespace dcsim {
namespace {

/// op 0 views the parameter, 1 makes a, 2 views a, 3 returns a view of a and a new tensor, 4 makes
/// the loss, 5 makes the gradient.
Graph Sample() {
  return ParseGraphText(R"(
graph sample 1 tokens
param w float32[4,2]
buffer c float32[4]
input x float32[3,4]
forward
  v: float32[2,4] views w = aten::t(w)
  a: float32[3,2] = aten::mm(x, v)
  u: float32[2,3] views a = aten::t(a)
  s: float32[6] views a, m: float32[4] = my::both(a, c)
  l: float32[], _ = my::loss(s, m)
  loss l
  save a
backward
  tangent t: float32[] of l
  g: float32[4,2] = my::grad(t, a)
  gradient w = g
)");
}

/// The storage of the value of that name.
StorageId StorageOf(const Graph& graph, std::string_view name) {
  for (const Value& value : graph.values) {
    if (value.name == name) {
      return value.storage;
    }
  }
  ADD_FAILURE() << "no value " << name;
  return StorageId::None();
}

TEST(StepFactsTest, OpsWhoseOutputsAllAliasAreViews) {
  const StepFacts facts = AnalyseStep(Sample());
  EXPECT_EQ(facts.is_view, (std::vector<bool>{true, false, true, false, false, false}));
}

// PyTorch, attention.cu: seed and offset are tensors of the CPU unless a CUDA graph is captured.
TEST(StepFactsTest, SeedOfEfficientAttentionLiesOnTheHost) {
  const Graph graph = ParseGraphText(R"(
graph g 1 tokens
input q bfloat16[1,1,4,8]
forward
  o: bfloat16[1,1,4,8], m: float32[1,1,32], s: int64[], f: int64[] = aten::_scaled_dot_product_efficient_attention(q, q, q)
  l: float32[] = my::loss(o, m, s, f)
  loss l
)");
  const StepFacts facts = AnalyseStep(graph);
  EXPECT_THAT(facts.allocates[0],
              testing::ElementsAre(StorageOf(graph, "o"), StorageOf(graph, "m")));
  EXPECT_TRUE(facts.on_host[StorageOf(graph, "s").index()]);
  EXPECT_TRUE(facts.on_host[StorageOf(graph, "f").index()]);
  EXPECT_EQ(facts.producer[StorageOf(graph, "s").index()], OpId(0));
}

// What a return that nothing uses would hold is not recorded, so a kernel may have made it.
TEST(StepFactsTest, OpWithAnUnusedReturnIsNoView) {
  const Graph graph = ParseGraphText(R"(
graph g 1 tokens
input x float32[4]
forward
  v: float32[4] views x, _ = my::both(x)
  l: float32[] = my::loss(v)
  loss l
)");
  EXPECT_FALSE(AnalyseStep(graph).is_view[0]);
}

// Its output is its input, changed: no storage is new, and yet a kernel runs.
TEST(StepFactsTest, OpThatWritesAnArgumentIsNoView) {
  Graph graph = ParseGraphText(R"(
graph g 1 tokens
input x float32[4]
forward
  v: float32[4] views x = aten::neg_(x)
  l: float32[] = my::loss(v)
  loss l
)");
  EXPECT_TRUE(AnalyseStep(graph).is_view[0]);
  graph.schemas[graph.op(OpId(0)).schema] = "aten::neg_(Tensor(a!) self) -> Tensor(a!)";
  EXPECT_FALSE(AnalyseStep(graph).is_view[0]);
}

TEST(StepFactsTest, ProducerIsTheOpThatFirstWritesAStorage) {
  const Graph graph = Sample();
  const StepFacts facts = AnalyseStep(graph);
  EXPECT_EQ(facts.producer[StorageOf(graph, "a").index()], OpId(1));
  EXPECT_EQ(facts.producer[StorageOf(graph, "m").index()], OpId(3));
  EXPECT_EQ(facts.producer[StorageOf(graph, "g").index()], OpId(5));
}

TEST(StepFactsTest, ResidentsAndTangentsHaveNoProducer) {
  const Graph graph = Sample();
  const StepFacts facts = AnalyseStep(graph);
  for (const char* name : {"w", "c", "x", "t"}) {
    EXPECT_TRUE(facts.producer[StorageOf(graph, name).index()].is_none()) << name;
  }
}

TEST(StepFactsTest, OpsAllocateTheStoragesThatTheyProduce) {
  const Graph graph = Sample();
  const StepFacts facts = AnalyseStep(graph);
  EXPECT_THAT(facts.allocates[0], testing::IsEmpty());
  EXPECT_THAT(facts.allocates[1], testing::ElementsAre(StorageOf(graph, "a")));
  EXPECT_THAT(facts.allocates[3], testing::ElementsAre(StorageOf(graph, "m")));
}

TEST(StepFactsTest, ParametersAreKnownByTheirStorage) {
  const Graph graph = Sample();
  const StepFacts facts = AnalyseStep(graph);
  EXPECT_EQ(facts.param_of[StorageOf(graph, "w").index()], ParamId(0));
  EXPECT_TRUE(facts.param_of[StorageOf(graph, "x").index()].is_none());
}

TEST(StepFactsTest, BuffersAndInputsAreConstant) {
  const Graph graph = Sample();
  const StepFacts facts = AnalyseStep(graph);
  EXPECT_TRUE(facts.is_constant[StorageOf(graph, "c").index()]);
  EXPECT_TRUE(facts.is_constant[StorageOf(graph, "x").index()]);
  EXPECT_FALSE(facts.is_constant[StorageOf(graph, "w").index()]);
  EXPECT_FALSE(facts.is_constant[StorageOf(graph, "t").index()]);
}

std::vector<OpId> ForwardOrder() {
  return {OpId(0), OpId(1), OpId(2), OpId(3), OpId(4)};
}

// w is touched through its view v as well.
TEST(FindUsesTest, ViewsAreUsesOfTheirStorage) {
  const Graph graph = Sample();
  const UseSpan w = FindUses(graph, ForwardOrder())[StorageOf(graph, "w").index()];
  EXPECT_TRUE(w.used);
  EXPECT_EQ(w.first, 0U);
  EXPECT_EQ(w.last, 1U);
}

// a is made at 1, viewed at 2 and 3, and read through s at 4.
TEST(FindUsesTest, SpanReachesFromTheFirstWriteToTheLastRead) {
  const Graph graph = Sample();
  const UseSpan a = FindUses(graph, ForwardOrder())[StorageOf(graph, "a").index()];
  EXPECT_EQ(a.first, 1U);
  EXPECT_EQ(a.last, 4U);
}

TEST(FindUsesTest, StoragesOfOtherGraphsAreUnused) {
  const Graph graph = Sample();
  const auto uses = FindUses(graph, ForwardOrder());
  EXPECT_FALSE(uses[StorageOf(graph, "g").index()].used);
  EXPECT_FALSE(uses[StorageOf(graph, "t").index()].used);
}

TEST(FindUsesTest, PositionsAreThoseOfTheOrder) {
  const Graph graph = Sample();
  const auto uses = FindUses(graph, {OpId(0), OpId(1), OpId(3), OpId(2), OpId(4)});
  EXPECT_EQ(uses[StorageOf(graph, "c").index()].first, 2U);
  EXPECT_EQ(uses[StorageOf(graph, "c").index()].last, 2U);
}

}  // namespace
}  // namespace dcsim
