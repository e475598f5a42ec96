#include "model/ir/graph_reader.h"

#include <gtest/gtest.h>

#include "model/ir/document.h"
#include "tests/model/ir/graph_document.h"
#include "tests/support/error_text.h"

namespace dcsim {
namespace {

TEST(GraphReaderTest, HeaderIsRead) {
  const Graph graph = ParseGraph(ValidGraph().dump(), "g.json");
  EXPECT_EQ(graph.name, "tiny");
  EXPECT_EQ(graph.tokens, 2);
  EXPECT_EQ(graph.notes.command, "python -m dcrecord tiny");
  EXPECT_EQ(graph.notes.options, R"({"batch":2})");
}

TEST(GraphReaderTest, ParametersAreRead) {
  const Graph graph = ParseGraph(ValidGraph().dump(), "g.json");
  ASSERT_EQ(graph.params.size(), 2U);
  EXPECT_EQ(graph.params[0].name, "w");
  EXPECT_TRUE(graph.params[0].requires_grad);
  EXPECT_EQ(graph.params[0].tied, std::vector<std::string>{"head"});
  EXPECT_FALSE(graph.params[1].requires_grad);
  EXPECT_EQ(graph.numel(ParamId(0)), 6);
  EXPECT_EQ(graph.dtype(ParamId(0)), DType::kBFloat16);
}

TEST(GraphReaderTest, ParameterCountIsTheSumOverParameters) {
  // w [2,3] and f [3].
  EXPECT_EQ(ParseGraph(ValidGraph().dump(), "g.json").parameter_count(), 9);
}

// "AQAAAAAAAAA=" are the eight bytes of int64 1.
TEST(GraphReaderTest, BufferContentsAreDecoded) {
  const Graph graph = ParseGraph(ValidGraph().dump(), "g.json");
  EXPECT_EQ(graph.buffers[0].data, std::string("\1\0\0\0\0\0\0\0", 8));
}

TEST(GraphReaderTest, InputFillIsRead) {
  const Graph graph = ParseGraph(ValidGraph().dump(), "g.json");
  EXPECT_EQ(graph.inputs[0].fill, FillKind::kTokens);
  EXPECT_EQ(graph.inputs[0].vocabulary, 64);
  EXPECT_EQ(graph.inputs[1].fill, FillKind::kUniform);
}

TEST(GraphReaderTest, OpTensorsAreThoseAmongItsArgumentsInOrder) {
  const Graph graph = ParseGraph(ValidGraph().dump(), "g.json");
  // aten::mm(x, v) -> a, where v = aten::t(w).
  const Op& op = graph.op(OpId(1));
  EXPECT_EQ(graph.target(OpId(1)), "aten::mm");
  EXPECT_EQ(graph.modules[op.module], "layer");
  ASSERT_EQ(op.inputs.size(), 2U);
  EXPECT_EQ(graph.value(op.inputs[0]).name, "x");
  EXPECT_EQ(graph.value(op.inputs[1]).name, "v");
  ASSERT_EQ(op.outputs.size(), 1U);
  EXPECT_EQ(graph.value(op.outputs[0]).name, "a");
}

TEST(GraphReaderTest, BackwardNamesItsForward) {
  const Graph graph = ParseGraph(ValidGraph().dump(), "g.json");
  ASSERT_EQ(graph.graphs.size(), 2U);
  EXPECT_TRUE(graph.graphs[0].forward.is_none());
  EXPECT_EQ(graph.graphs[1].forward, GraphId(0));
  EXPECT_EQ(graph.graphs[1].first_op, 3U);
  EXPECT_EQ(graph.op(OpId(3)).graph, GraphId(1));
}

TEST(GraphReaderTest, OutputKindsAreRead) {
  const Graph graph = ParseGraph(ValidGraph().dump(), "g.json");
  const auto& outputs = graph.graphs[0].outputs;
  EXPECT_EQ(outputs[0].kind, GraphOutputKind::kLoss);
  EXPECT_EQ(outputs[1].kind, GraphOutputKind::kOutput);
  EXPECT_EQ(outputs[1].name, "logits");
  EXPECT_TRUE(outputs[1].held);
  EXPECT_EQ(outputs[2].kind, GraphOutputKind::kSaved);
  EXPECT_EQ(graph.graphs[1].outputs[0].param, ParamId(0));
}

TEST(GraphReaderTest, PrintGivesTheTextBack) {
  const std::string text = ValidGraph().dump();
  EXPECT_EQ(PrintGraph(ParseGraph(text, "g.json")), text);
}

// Python's json escapes what is not ASCII, and so does Print: the file stays the same.
TEST(GraphReaderTest, PrintEscapesLikeTheRecorder) {
  std::string text = ValidGraph().dump();
  text.replace(text.find("\"logits\""), 8, "\"\\u00e9t\\u00e9\"");
  const Graph graph = ParseGraph(text, "g.json");
  EXPECT_EQ(graph.graphs[0].outputs[1].name, "été");
  EXPECT_EQ(PrintGraph(graph), text);
}

// FNV-1a of the bytes as they are: another spelling of the same graph is another file.
TEST(GraphReaderTest, HashIsThatOfTheText) {
  const std::string text = ValidGraph().dump();
  EXPECT_EQ(ParseGraph(text, "g.json").hash, HashBytes(text));
}

// No op depends on it: a recording that gains it keeps what was measured on it.
TEST(GraphReaderTest, HashLeavesTheHiddenSizeOut) {
  Json document = ValidGraph();
  const std::string text = document.dump();
  document["options"]["hidden_size"] = 35;
  for (const int indent : {-1, 2}) {
    std::string held = document.dump(indent);
    if (indent == -1) {
      EXPECT_EQ(ParseGraph(held, "g.json").hash, HashBytes(text));
    }
    const std::uint64_t hash = ParseGraph(held, "g.json").hash;
    held.replace(held.find("35"), 2, "4096");
    EXPECT_EQ(ParseGraph(held, "g.json").hash, hash);
    EXPECT_NE(HashBytes(held), hash);
  }
}

TEST(GraphReaderTest, FaultsOfAllTablesAreReportedAtOnce) {
  Json document = ValidGraph();
  document["tokens"] = -1;
  document["storages"][0] = "many";
  document["values"][0]["dtype"] = "float";
  document["graphs"][0]["ops"][0]["module"] = 7;
  document["extra"] = 1;
  EXPECT_EQ(ErrorText([&] { ParseGraph(document.dump(), "g.json"); }),
            "g.json: /tokens: expected a count of 0 or more\n"
            "g.json: /storages/0: expected a whole number, found \"many\"\n"
            "g.json: /values/0/dtype: expected bool, uint8, int8, int16, int32, int64, uint64, "
            "float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2, complex64 or "
            "complex128, found 'float', did "
            "you mean 'float16'?\n"
            "g.json: /graphs/0/ops/0/module: expected an index into modules, which has 2 entries\n"
            "g.json: /extra: unknown key 'extra'");
}

// Rules between tables are checked once the tables are sound.
TEST(GraphReaderTest, BrokenRulesAreReportedAtOnce) {
  Json document = ValidGraph();
  document["graphs"][0]["ops"][1]["args"].erase(1);
  document["graphs"][1]["outputs"][0]["param"] = 1;
  EXPECT_EQ(ErrorText([&] { ParseGraph(document.dump(), "g.json"); }),
            "g.json: /graphs/0/ops/1: aten::mm takes 2 arguments, found 1\n"
            "g.json: /graphs/1/outputs/0: a gradient of the frozen parameter f\n"
            "g.json: /graphs/1/outputs/0: the gradient's shape is not that of f");
}

TEST(GraphReaderTest, TextThatIsNoJsonNamesFileLineAndColumn) {
  const std::string message = ErrorText([] { ParseGraph("{\"a\"}", "g.json"); });
  EXPECT_EQ(message.substr(0, 19), "g.json:1:5: not val");
}

}  // namespace
}  // namespace dcsim
