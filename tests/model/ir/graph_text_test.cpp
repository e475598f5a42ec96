#include "model/ir/graph_text.h"

#include <gtest/gtest.h>

#include "model/ir/graph_reader.h"
#include "tests/support/error_text.h"
#include "tests/support/row_name.h"

namespace dcsim {
namespace {

// The example of the header.
constexpr char kTwoLayers[] = R"(
graph two-layers 32 tokens
param w1 bfloat16[64,64]
param w2 bfloat16[64,64] frozen
input x bfloat16[32,64]
forward
  a: bfloat16[32,64] = aten::mm(x, w1) @layers.0
  v: bfloat16[64,32] views a = aten::t(a)
  l: float32[], _ = aten::nll_loss_forward(v)
  loss l
  output v as logits held
  save a
backward of 0
  tangent t: float32[] of l
  g: bfloat16[64,64] = aten::mm(t, a)
  gradient w1 = g
)";

TEST(GraphTextTest, HeaderNamesGraphAndTokens) {
  const Graph graph = ParseGraphText(kTwoLayers);
  EXPECT_EQ(graph.name, "two-layers");
  EXPECT_EQ(graph.tokens, 32);
}

TEST(GraphTextTest, FrozenParamsNeedNoGradient) {
  const Graph graph = ParseGraphText(kTwoLayers);
  ASSERT_EQ(graph.params.size(), 2U);
  EXPECT_TRUE(graph.params[0].requires_grad);
  EXPECT_FALSE(graph.params[1].requires_grad);
}

TEST(GraphTextTest, ValuesAreContiguousInAStorageJustLargeEnough) {
  const Graph graph = ParseGraphText(kTwoLayers);
  const Value& w1 = graph.value(graph.params[0].value);
  EXPECT_EQ(w1.strides, (std::vector<std::int64_t>{64, 1}));
  EXPECT_EQ(graph.storage(w1.storage).bytes, Bytes(8192));
}

TEST(GraphTextTest, ViewsLieInTheStorageOfTheirBase) {
  const Graph graph = ParseGraphText(kTwoLayers);
  const ValueId a = graph.op(OpId(0)).outputs[0];
  const ValueId v = graph.op(OpId(1)).outputs[0];
  EXPECT_NE(a, v);
  EXPECT_EQ(graph.storage_of(a), graph.storage_of(v));
}

TEST(GraphTextTest, ModuleFollowsTheAtSign) {
  const Graph graph = ParseGraphText(kTwoLayers);
  EXPECT_EQ(graph.modules[graph.op(OpId(0)).module], "layers.0");
  EXPECT_EQ(graph.modules[graph.op(OpId(1)).module], "");
}

TEST(GraphTextTest, UnderscoreIsAReturnThatNothingUses) {
  const Graph graph = ParseGraphText(kTwoLayers);
  const Op& op = graph.op(OpId(2));
  ASSERT_EQ(op.outputs.size(), 2U);
  EXPECT_FALSE(op.outputs[0].is_none());
  EXPECT_TRUE(op.outputs[1].is_none());
}

TEST(GraphTextTest, OutputsOfTheForwardAreMarked) {
  const Graph graph = ParseGraphText(kTwoLayers);
  const auto& outputs = graph.graphs[0].outputs;
  ASSERT_EQ(outputs.size(), 3U);
  EXPECT_EQ(outputs[0].kind, GraphOutputKind::kLoss);
  EXPECT_EQ(outputs[1].name, "logits");
  EXPECT_TRUE(outputs[1].held);
  EXPECT_EQ(outputs[2].kind, GraphOutputKind::kSaved);
}

TEST(GraphTextTest, UsesOfResidentsAndSavedValuesBecomeInputs) {
  const Graph graph = ParseGraphText(kTwoLayers);
  const auto& forward = graph.graphs[0].inputs;
  ASSERT_EQ(forward.size(), 2U);
  EXPECT_EQ(forward[0].kind, GraphInputKind::kInput);
  EXPECT_EQ(forward[1].kind, GraphInputKind::kParam);
  const auto& backward = graph.graphs[1].inputs;
  ASSERT_EQ(backward.size(), 2U);
  EXPECT_EQ(backward[0].kind, GraphInputKind::kTangent);
  EXPECT_EQ(graph.value(backward[0].of).name, "l");
  EXPECT_EQ(backward[1].kind, GraphInputKind::kSaved);
  EXPECT_EQ(graph.value(backward[1].value).name, "a");
}

TEST(GraphTextTest, GradientNamesItsParam) {
  const Graph graph = ParseGraphText(kTwoLayers);
  const GraphOutput& gradient = graph.graphs[1].outputs[0];
  EXPECT_EQ(gradient.kind, GraphOutputKind::kGradient);
  EXPECT_EQ(gradient.param, ParamId(0));
  EXPECT_EQ(graph.value(gradient.value).name, "g");
}

TEST(GraphTextTest, FillFollowsTheInputsDType) {
  const Graph graph = ParseGraphText(R"(
graph g 1 tokens
input ids int64[4]
input x float32[4]
forward
  l: float32[] = my::loss(ids, x)
  loss l
)");
  EXPECT_EQ(graph.inputs[0].fill, FillKind::kTokens);
  EXPECT_EQ(graph.inputs[1].fill, FillKind::kUniform);
}

TEST(GraphTextTest, GraphBreaksAreLinkedByReceiveAndPass) {
  const Graph graph = ParseGraphText(R"(
graph broken 1 tokens
param w float32[4]
forward
  a: float32[4] = my::op(w)
  output a
forward
  receive a
  l: float32[] = my::loss(a)
  loss l
backward of 1
  tangent t: float32[] of l
  ga: float32[4] = my::grad(t)
  pass ga of a
backward of 0
  receive ga
  g: float32[4] = my::grad(ga)
  gradient w = g
)");
  EXPECT_EQ(graph.graphs[1].inputs[0].kind, GraphInputKind::kActivation);
  EXPECT_EQ(graph.graphs[2].outputs[0].kind, GraphOutputKind::kTangent);
  EXPECT_EQ(graph.graphs[3].forward, GraphId(0));
  EXPECT_EQ(graph.graphs[3].inputs[0].kind, GraphInputKind::kActivation);
}

TEST(GraphTextTest, RecomputedOpsAreMarked) {
  const Graph graph = ParseGraphText(R"(
graph g 1 tokens
input x float32[4]
forward
  l: float32[] = my::loss(x)
  loss l
backward
  y: float32[4] = my::op(x) recompute @layer
)");
  EXPECT_FALSE(graph.op(OpId(0)).recompute);
  EXPECT_TRUE(graph.op(OpId(1)).recompute);
  EXPECT_EQ(graph.modules[graph.op(OpId(1)).module], "layer");
}

TEST(GraphTextTest, SameTextGivesTheSameHash) {
  EXPECT_EQ(ParseGraphText(kTwoLayers).hash, ParseGraphText(kTwoLayers).hash);
}

// The JSON that a text graph prints as is a valid document: the reader has the same rules.
TEST(GraphTextTest, IsPrintedAsADocumentThatTheReaderTakes) {
  const Graph graph = ParseGraphText(kTwoLayers);
  const std::string json = PrintGraph(graph);
  EXPECT_EQ(PrintGraph(ParseGraph(json, "g.json")), json);
  EXPECT_EQ(ParseGraph(json, "g.json").hash, graph.hash);
}

struct Fault {
  const char* name;
  const char* text;
  const char* message;
};

class GraphTextFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(GraphTextFaultTest, NamesLineAndPlace) {
  EXPECT_EQ(ErrorText([] { ParseGraphText(GetParam().text, "t"); }), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Lines,
    GraphTextFaultTest,
    testing::Values(
        Fault{"UnknownDType", "param w bfloat61[4]",
              "t:1: unknown dtype 'bfloat61', did you mean 'bfloat16'? at '[4]'"},
        Fault{"NoShape", "# comment\nparam w float32", "t:2: expected '[' at the end"},
        Fault{"ExtentNoCount", "param w float32[x]", "t:1: expected a count, found 'x' at ']'"},
        Fault{"NegativeExtent", "param w float32[-1]", "t:1: expected a count, found '-1' at ']'"},
        Fault{"TooManyElements", "param w bfloat16[6488888888888888888]",
              "t:1: expected at most 2^48 elements at the end"},
        Fault{"StridesTooLong", "param w float32[0,281474976710656,2]",
              "t:1: expected at most 2^48 elements at the end"},
        Fault{"SecondValue", "param w float32[4]\nparam w float32[4]",
              "t:2: a second value 'w' at the end"},
        Fault{"UnknownBase", "param w float32[4] views v", "t:1: unknown value 'v' at the end"},
        Fault{"OpBeforeAnyGraph", "input x float32[4]\n\ny: float32[4] = my::op(x)",
              "t:3: expected 'forward' first at ': float32[4] = my::op(x)'"},
        Fault{"UnknownArgument", "forward\ny: float32[4] = my::op(x)",
              "t:2: unknown value 'x' at ')'"},
        Fault{"UnknownParam", "forward\ngradient w = g", "t:2: unknown param 'w' at '= g'"},
        Fault{"OutputWithoutType", "forward\ny = my::op()", "t:2: expected ':' at '= my::op()'"},
        Fault{"TextBehindALine", "graph g 1 tokens more",
              "t:1: expected the end of the line at 'more'"},
        Fault{"NoName", "param [4]", "t:1: expected a name at '[4]'"},
        Fault{"BrokenRule", "graph g 1 tokens\nforward\n",
              "t: /graphs: expected one output of kind 'loss' in the whole step, found 0"}),
    RowName());

}  // namespace
}  // namespace dcsim
