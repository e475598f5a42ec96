#include <gtest/gtest.h>

#include "model/ir/graph_reader.h"
#include "tests/model/ir/graph_document.h"
#include "tests/support/error_text.h"
#include "tests/support/row_name.h"

namespace dcsim {
namespace {

/// One rule of docs/reference/formats.md, dc-graph/1, broken in a document that is right otherwise.
struct Break {
  const char* name;
  void (*change)(Json& document);
  const char* message;  // without "g.json"
};

class GraphFaultTest : public testing::TestWithParam<Break> {};

TEST_P(GraphFaultTest, IsReportedWithItsPlace) {
  Json document = ValidGraph();
  GetParam().change(document);
  EXPECT_EQ(ErrorText([&] { ParseGraph(document.dump(), "g.json"); }),
            std::string("g.json") + GetParam().message);
}

TEST(GraphFaultTest, DocumentHasNoneBefore) {
  EXPECT_NO_THROW(ParseGraph(ValidGraph().dump(), "g.json"));
}

INSTANTIATE_TEST_SUITE_P(
    Header,
    GraphFaultTest,
    testing::Values(
        Break{"Format", [](Json& d) { d["format"] = "dc-graph/2"; },
              ": /format: expected a document with \"format\": \"dc-graph/1\", found "
              "\"dc-graph/2\""},
        Break{"NoName", [](Json& d) { d.erase("name"); }, ": key 'name' is missing"},
        Break{"NoRecorder", [](Json& d) { d.erase("recorder"); }, ": key 'recorder' is missing"},
        Break{"NoOptions", [](Json& d) { d.erase("options"); }, ": key 'options' is missing"},
        Break{"NegativeTokens", [](Json& d) { d["tokens"] = -1; },
              ": /tokens: expected a count of 0 or more"},
        Break{"NoHiddenSize", [](Json& d) { d["options"]["hidden_size"] = 0; },
              ": /options/hidden_size: expected a count from 1 to 16777216"},
        Break{"GraphsNoList", [](Json& d) { d["schemas"] = "aten::mm"; },
              ": /schemas: expected a list, found \"aten::mm\"\n"
              "g.json: /graphs/0/ops/0/schema: expected an index into schemas, which has 0 "
              "entries\n"
              "g.json: /graphs/0/ops/1/schema: expected an index into schemas, which has 0 "
              "entries\n"
              "g.json: /graphs/0/ops/2/schema: expected an index into schemas, which has 0 "
              "entries\n"
              "g.json: /graphs/1/ops/0/schema: expected an index into schemas, which has 0 "
              "entries"},
        Break{"UnknownKey", [](Json& d) { d["token"] = 1; },
              ": /token: unknown key 'token', did you mean 'tokens'?"}),
    RowName());

INSTANTIATE_TEST_SUITE_P(
    Values,
    GraphFaultTest,
    testing::Values(
        Break{"NegativeStorage", [](Json& d) { d["storages"][8] = -1; },
              ": /storages/8: expected bytes from 0 to 2^51"},
        // 2^51 + 1
        Break{"HugeStorage", [](Json& d) { d["storages"][8] = 2251799813685249; },
              ": /storages/8: expected bytes from 0 to 2^51"},
        Break{"NegativeExtent",
              [](Json& d) {
                d["values"][9]["shape"] = {-2, 3};
              },
              ": /values/9/shape/0: expected a count from 0 to 2^48"},
        Break{"NegativeStride",
              [](Json& d) {
                d["values"][9]["strides"] = {3, -1};
              },
              ": /values/9/strides/1: expected a count from 0 to 2^48"},
        Break{"FewerStridesThanDimensions", [](Json& d) { d["values"][9]["strides"] = {3}; },
              ": /values/9: expected as many strides as dimensions"},
        Break{"NegativeOffset", [](Json& d) { d["values"][9]["offset"] = -1; },
              ": /values/9: expected an offset of 0 or more"},
        // 2^25 * 2^25 = 2^50 elements.
        Break{"TooManyElements",
              [](Json& d) {
                d["values"][9]["shape"] = {33554432, 33554432};
              },
              ": /values/9: expected at most 2^48 elements"},
        Break{"StorageOutOfRange", [](Json& d) { d["values"][9]["storage"] = 9; },
              ": /values/9/storage: expected an index into storages, which has 9 entries"},
        // Offset 1: the last of 6 elements of 2 bytes ends at byte 14.
        Break{"ViewBeyondItsStorage", [](Json& d) { d["values"][9]["offset"] = 1; },
              ": /values/9: the view reaches byte 14 of a storage of 12 bytes"},
        // (1 * 4 + 2 * 1 + 1) elements of 2 bytes.
        Break{"StridesBeyondTheStorage",
              [](Json& d) {
                d["values"][9]["strides"] = {4, 1};
              },
              ": /values/9: the view reaches byte 14 of a storage of 12 bytes"},
        Break{"StridesThatOverflow",
              [](Json& d) {
                d["values"][9]["shape"] = {65536, 3};
                d["values"][9]["strides"] = {281474976710656, 1};
              },
              ": /values/9: the view reaches byte 9223372036854775807 of a storage of 12 bytes"}),
    RowName());

INSTANTIATE_TEST_SUITE_P(
    Residents,
    GraphFaultTest,
    testing::Values(Break{"ParamValueOutOfRange", [](Json& d) { d["params"][1]["value"] = 10; },
                          ": /params/1/value: expected a value id below 10"},
                    Break{"TiedNoText", [](Json& d) { d["params"][0]["tied"] = {1}; },
                          ": /params/0/tied/0: expected a text, found 1"},
                    Break{"ParamWithoutElements", [](Json& d) { d["values"][1]["shape"] = {0}; },
                          ": /params/1: the parameter f has no elements"},
                    Break{"TwoResidentsInOneValue", [](Json& d) { d["buffers"][0]["value"] = 1; },
                          ": /buffers/0: value 1 (f) stands for two residents\n"
                          "g.json: /buffers/0: data holds 8 bytes, expected 6"},
                    Break{"BufferNoBase64", [](Json& d) { d["buffers"][0]["data"] = "AQ"; },
                          ": /buffers/0/data: expected base64"},
                    // "AQ==" is one byte of the eight of an int64.
                    Break{"BufferOfOtherSize", [](Json& d) { d["buffers"][0]["data"] = "AQ=="; },
                          ": /buffers/0: data holds 1 bytes, expected 8"},
                    Break{"UnknownFill", [](Json& d) { d["inputs"][1]["fill"]["kind"] = "normal"; },
                          ": /inputs/1/fill/kind: expected tokens or uniform, found 'normal'\n"
                          "g.json: /inputs/1/fill: key 'vocabulary' is missing"},
                    Break{"TokensWithoutVocabulary",
                          [](Json& d) { d["inputs"][0]["fill"].erase("vocabulary"); },
                          ": /inputs/0/fill: key 'vocabulary' is missing"},
                    Break{"UniformWithVocabulary",
                          [](Json& d) { d["inputs"][1]["fill"]["vocabulary"] = 2; },
                          ": /inputs/1/fill/vocabulary: unknown key 'vocabulary'"}),
    RowName());

INSTANTIATE_TEST_SUITE_P(
    Ops,
    GraphFaultTest,
    testing::Values(
        Break{"SchemaOutOfRange", [](Json& d) { d["graphs"][0]["ops"][0]["schema"] = 4; },
              ": /graphs/0/ops/0/schema: expected an index into schemas, which has 4 entries"},
        Break{"ModuleOutOfRange", [](Json& d) { d["graphs"][0]["ops"][0]["module"] = 2; },
              ": /graphs/0/ops/0/module: expected an index into modules, which has 2 entries"},
        Break{"NoSchema", [](Json& d) { d["schemas"][1] = "aten::mm"; },
              ": /schemas/1: expected a schema such as \"aten::mm(Tensor self, Tensor mat2) -> "
              "Tensor\""},
        Break{"OneArgumentTooFew", [](Json& d) { d["graphs"][0]["ops"][1]["args"].erase(1); },
              ": /graphs/0/ops/1: aten::mm takes 2 arguments, found 1"},
        Break{"ArgumentOfAnotherType", [](Json& d) { d["graphs"][1]["ops"][0]["args"][2] = true; },
              ": /graphs/1/ops/0/args/2: does not fit 'SymInt[] size' of my::grad"},
        Break{"ArgumentNoForm",
              [](Json& d) {
                d["graphs"][0]["ops"][1]["args"][1] = {{"v", 10}};
              },
              ": /graphs/0/ops/1/args/1/v: expected a value id below 10"},
        Break{"OneReturnTooFew", [](Json& d) { d["graphs"][0]["ops"][2]["outputs"].erase(1); },
              ": /graphs/0/ops/2: my::loss returns 2 values, found 1"},
        Break{"OutputOutOfRange", [](Json& d) { d["graphs"][0]["ops"][2]["outputs"][1] = 10; },
              ": /graphs/0/ops/2/outputs/1: expected a value id below 10"},
        Break{"RecomputeNoBool", [](Json& d) { d["graphs"][1]["ops"][0]["recompute"] = 1; },
              ": /graphs/1/ops/0/recompute: expected true or false, found 1"},
        Break{"ProducedTwice", [](Json& d) { d["graphs"][0]["ops"][2]["outputs"][1] = 7; },
              ": /graphs/0/ops/2: value 7 (l) is produced twice"},
        Break{"UsedBeforeItsProduction",
              [](Json& d) { std::swap(d["graphs"][0]["ops"][0], d["graphs"][0]["ops"][1]); },
              ": /graphs/0/ops/0: value 5 (v) is used before it is produced"},
        Break{"UsedWithoutBeingAnInput", [](Json& d) { d["graphs"][1]["inputs"].erase(0); },
              ": /graphs/1/ops/0: value 6 (a) is used and no input of this graph"},
        Break{"OutputInAForeignStorage", [](Json& d) { d["values"][6]["storage"] = 3; },
              ": /graphs/0/ops/1: value 6 (a) lies in a storage that exists already and is no "
              "input's"},
        // mm's schema has no alias mark; x's storage of 12 bytes would hold a.
        Break{"OutputInAnInputsStorage", [](Json& d) { d["values"][6]["storage"] = 4; },
              ": /graphs/0/ops/1: value 6 (a) lies in an input's storage, which aten::mm does not "
              "allow"}),
    RowName());

TEST(GraphRuleTest, UnsafeViewMayAliasWithoutAMark) {
  Json document = ValidGraph();
  document["schemas"][0] = "aten::_unsafe_view(Tensor self) -> Tensor";
  EXPECT_NO_THROW(ParseGraph(document.dump(), "g.json"));
}

TEST(GraphRuleTest, UnsafeSplitsMayAliasWithoutAMark) {
  for (const std::string name : {"unsafe_split.Tensor", "unsafe_split_with_sizes"}) {
    Json document = ValidGraph();
    document["schemas"][0] = "aten::" + name + "(Tensor self) -> Tensor[]";
    document["graphs"][0]["ops"][0]["list"] = true;
    EXPECT_NO_THROW(ParseGraph(document.dump(), "g.json")) << name;
  }
}

// The two halves of a split lie in one storage that no input has.
TEST(GraphRuleTest, OutputsOfOneOpMayShareANewStorage) {
  Json document = ValidGraph();
  document["values"].push_back(document["values"][7]);
  document["values"][10]["name"] = "second";
  document["graphs"][0]["ops"][2]["outputs"][1] = 10;
  EXPECT_NO_THROW(ParseGraph(document.dump(), "g.json"));
}

// An op with `list` returns one list; its elements are the outputs.
TEST(GraphRuleTest, ListMayHaveAnyNumberOfOutputs) {
  Json document = ValidGraph();
  document["schemas"][0] = "aten::split(Tensor(a -> *) self) -> Tensor(a)[]";
  document["values"].push_back(document["values"][5]);
  document["graphs"][0]["ops"][0]["outputs"] = {5, 10};
  document["graphs"][0]["ops"][0]["list"] = true;
  EXPECT_NO_THROW(ParseGraph(document.dump(), "g.json"));
}

// An empty tensor touches no byte, wherever it is said to lie.
TEST(GraphRuleTest, EmptyViewMayLieAnywhere) {
  Json document = ValidGraph();
  document["values"][7]["shape"] = {0};
  document["values"][7]["strides"] = {1};
  document["values"][7]["offset"] = 1000;
  EXPECT_NO_THROW(ParseGraph(document.dump(), "g.json"));
}

}  // namespace
}  // namespace dcsim
