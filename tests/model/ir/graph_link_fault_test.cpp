#include <gtest/gtest.h>

#include "model/ir/graph_reader.h"
#include "tests/model/ir/graph_document.h"
#include "tests/support/error_text.h"
#include "tests/support/row_name.h"

namespace dcsim {
namespace {

/// A rule about the inputs and outputs of graphs, broken in a document that is right otherwise.
struct Break {
  const char* name;
  void (*change)(Json& document);
  const char* message;  // without "g.json: "
};

class GraphLinkFaultTest : public testing::TestWithParam<Break> {};

TEST_P(GraphLinkFaultTest, IsReportedWithItsPlace) {
  Json document = ValidGraph();
  GetParam().change(document);
  EXPECT_EQ(ErrorText([&] { ParseGraph(document.dump(), "g.json"); }),
            std::string("g.json: ") + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Inputs,
    GraphLinkFaultTest,
    testing::Values(
        Break{"UnknownKind", [](Json& d) { d["graphs"][0]["inputs"][0]["kind"] = "weight"; },
              "/graphs/0/inputs/0/kind: expected param, buffer, input, saved, tangent or "
              "activation, found 'weight'"},
        Break{"ListedTwice", [](Json& d) { d["graphs"][0]["inputs"][1]["value"] = 0; },
              "/graphs/0/inputs/1: value 0 (w) is listed twice\n"
              "g.json: /graphs/0/ops/2: value 1 (f) is used and no input of this graph"},
        Break{"ParamThatIsABuffer", [](Json& d) { d["graphs"][0]["inputs"][2]["kind"] = "param"; },
              "/graphs/0/inputs/2: value 2 (one) is no param"},
        Break{"BufferThatIsAnInput",
              [](Json& d) { d["graphs"][0]["inputs"][3]["kind"] = "buffer"; },
              "/graphs/0/inputs/3: value 3 (ids) is no buffer"},
        Break{"InputThatIsAnActivation",
              [](Json& d) { d["graphs"][1]["inputs"][0]["kind"] = "input"; },
              "/graphs/1/inputs/0: value 6 (a) is no input"},
        Break{"SavedThatIsNoSavedOutput", [](Json& d) { d["graphs"][0]["outputs"].erase(2); },
              "/graphs/1/inputs/0: value 6 (a) is no saved output of this graph's forward graph"},
        Break{"SavedInAForward",
              [](Json& d) {
                d["graphs"][0]["inputs"].push_back({{"kind", "saved"}, {"value", 9}});
              },
              "/graphs/0/inputs/5: value 9 (g) is no saved output of this graph's forward graph"},
        Break{"TangentOfNoOutput", [](Json& d) { d["graphs"][1]["inputs"][1]["of"] = 5; },
              "/graphs/1/inputs/1: a tangent must be a new value, 'of' an output of this graph's "
              "forward graph\n"
              "g.json: /graphs/1/ops/0: value 8 (t) is used before it is produced"},
        Break{"TangentThatExists",
              [](Json& d) {
                d["graphs"][1]["inputs"][1]["value"] = 7;
                d["graphs"][1]["ops"][0]["args"][1]["v"] = 7;
              },
              "/graphs/1/inputs/1: a tangent must be a new value, 'of' an output of this graph's "
              "forward graph"},
        Break{"TangentInAStorageThatExists", [](Json& d) { d["values"][8]["storage"] = 0; },
              "/graphs/1/inputs/1: value 8 (t) is a tangent and lies in a storage that exists "
              "already"},
        Break{"TangentWithoutOf", [](Json& d) { d["graphs"][1]["inputs"][1].erase("of"); },
              "/graphs/1/inputs/1: key 'of' is missing"},
        Break{"ActivationOfNoEarlierGraph",
              [](Json& d) {
                d["graphs"][1]["inputs"][0] = {{"kind", "activation"}, {"value", 7}};
              },
              "/graphs/1/inputs/0: value 7 (l) is no output of an earlier graph\n"
              "g.json: /graphs/1/ops/0: value 6 (a) is used and no input of this graph"}),
    RowName());

INSTANTIATE_TEST_SUITE_P(
    Outputs,
    GraphLinkFaultTest,
    testing::Values(
        Break{"UnknownKind", [](Json& d) { d["graphs"][0]["outputs"][2]["kind"] = "save"; },
              "/graphs/0/outputs/2/kind: expected loss, output, saved, gradient or tangent, found "
              "'save', did you mean 'saved'?"},
        Break{"OutputWithoutName", [](Json& d) { d["graphs"][0]["outputs"][1].erase("name"); },
              "/graphs/0/outputs/1: key 'name' is missing"},
        Break{"HeldLoss", [](Json& d) { d["graphs"][0]["outputs"][0]["held"] = true; },
              "/graphs/0/outputs/0/held: unknown key 'held'"},
        Break{"ParamOutOfRange", [](Json& d) { d["graphs"][1]["outputs"][0]["param"] = 2; },
              "/graphs/1/outputs/0/param: expected an index into params, which has 2 entries"},
        Break{"NeverProduced", [](Json& d) { d["graphs"][0]["outputs"][2]["value"] = 9; },
              "/graphs/0/outputs/2: value 9 (g) is never produced\n"
              "g.json: /graphs/1/inputs/0: value 6 (a) is no saved output of this graph's forward "
              "graph"},
        Break{"GradientOfAForward",
              [](Json& d) {
                d["graphs"][0]["outputs"][2] = {{"kind", "gradient"}, {"value", 4}, {"param", 0}};
                d["graphs"][1]["outputs"].erase(0);
                d["graphs"][1]["ops"].erase(0);
                d["graphs"][1]["inputs"].erase(0);
              },
              "/graphs/0/outputs/2: a forward graph has no output of this kind\n"
              "g.json: /graphs/0/outputs/2: the gradient of w lies in the memory of a param, "
              "buffer or input"},
        Break{"LossOfABackward",
              [](Json& d) {
                d["graphs"][1]["outputs"].push_back({{"kind", "loss"}, {"value", 9}});
              },
              "/graphs/1/outputs/1: a backward graph has no output of this kind\n"
              "g.json: /graphs: expected one output of kind 'loss' in the whole step, found 2"},
        Break{"NoLoss",
              [](Json& d) {
                d["graphs"][0]["outputs"][0] = {{"kind", "output"}, {"value", 7}, {"name", "l"}};
              },
              "/graphs: expected one output of kind 'loss' in the whole step, found 0"},
        Break{"SecondGradientOfAParam",
              [](Json& d) { d["graphs"][1]["outputs"].push_back(d["graphs"][1]["outputs"][0]); },
              "/graphs/1/outputs/1: a second gradient of param 0"},
        Break{"GradientOfAFrozenParam", [](Json& d) { d["params"][0]["requires_grad"] = false; },
              "/graphs/1/outputs/0: a gradient of the frozen parameter w"},
        Break{"GradientOfAnotherShape",
              [](Json& d) {
                d["values"][9]["shape"] = {3, 2};
                d["values"][9]["strides"] = {2, 1};
              },
              "/graphs/1/outputs/0: the gradient's shape is not that of w"},
        Break{"GradientInAnInput", [](Json& d) { d["graphs"][1]["outputs"][0]["value"] = 4; },
              "/graphs/1/outputs/0: the gradient of w lies in the memory of a param, buffer or "
              "input"}),
    RowName());

INSTANTIATE_TEST_SUITE_P(
    Pairs,
    GraphLinkFaultTest,
    testing::Values(
        Break{"BackwardWithoutForward", [](Json& d) { d["graphs"][1].erase("forward"); },
              "/graphs/1: key 'forward' is missing"},
        Break{"ForwardThatNamesAForward", [](Json& d) { d["graphs"][0]["forward"] = 0; },
              "/graphs/0/forward: unknown key 'forward'"},
        Break{"BackwardOfItself", [](Json& d) { d["graphs"][1]["forward"] = 1; },
              "/graphs/1/forward: expected an index into the graphs before it, which has 1 "
              "entries"},
        Break{"BackwardOfABackward",
              [](Json& d) {
                d["graphs"].push_back({{"direction", "backward"},
                                       {"forward", 1},
                                       {"inputs", Json::array()},
                                       {"outputs", Json::array()},
                                       {"ops", Json::array()}});
              },
              "/graphs/2: 'forward' must name an earlier forward graph"},
        Break{"TwoBackwardsOfOneForward",
              [](Json& d) {
                d["graphs"].push_back({{"direction", "backward"},
                                       {"forward", 0},
                                       {"inputs", Json::array()},
                                       {"outputs", Json::array()},
                                       {"ops", Json::array()}});
              },
              "/graphs/2: its forward graph has a backward graph already"}),
    RowName());

/// ValidGraph with its forward cut in two behind `a`, and its backward alike: the first backward
/// passes the gradient of `a` on to the second.
Json TwoPairs() {
  Json document = ValidGraph();
  Json& values = document["values"];
  values.push_back(values[6]);  // value 10: the gradient of a, in a storage of its own
  values[10]["storage"] = 9;
  document["storages"].push_back(8);
  document["graphs"] = Json::parse(R"([
    {"direction": "forward",
     "inputs": [{"kind": "param", "value": 0}, {"kind": "input", "value": 4}],
     "outputs": [{"kind": "output", "value": 6, "name": "a"}, {"kind": "saved", "value": 6}],
     "ops": [{"schema": 0, "args": [{"v": 0}], "outputs": [5], "module": 1},
             {"schema": 1, "args": [{"v": 4}, {"v": 5}], "outputs": [6], "module": 1}]},
    {"direction": "forward",
     "inputs": [{"kind": "activation", "value": 6}, {"kind": "param", "value": 1},
                {"kind": "input", "value": 3}, {"kind": "buffer", "value": 2}],
     "outputs": [{"kind": "loss", "value": 7}, {"kind": "saved", "value": 6}],
     "ops": [{"schema": 2, "args": [{"v": 6}, {"v": 1}, {"v": 3}, {"v": 2}], "outputs": [7, null],
              "module": 0}]},
    {"direction": "backward", "forward": 1,
     "inputs": [{"kind": "saved", "value": 6}, {"kind": "tangent", "value": 8, "of": 7}],
     "outputs": [{"kind": "tangent", "value": 10, "of": 6}],
     "ops": [{"schema": 3, "args": [{"v": 6}, {"v": 8}, [2, 2]], "outputs": [10], "module": 1}]},
    {"direction": "backward", "forward": 0,
     "inputs": [{"kind": "saved", "value": 6}, {"kind": "activation", "value": 10}],
     "outputs": [{"kind": "gradient", "value": 9, "param": 0}],
     "ops": [{"schema": 3, "args": [{"v": 6}, {"v": 10}, [2, 3]], "outputs": [9], "module": 1}]}])");
  return document;
}

TEST(GraphBreakTest, ActivationsAndTangentsLinkTheGraphs) {
  EXPECT_EQ(ParseGraph(TwoPairs().dump(), "g.json").graphs.size(), 4U);
}

TEST(GraphBreakTest, ActivationMustBeAnOutput) {
  Json document = TwoPairs();
  document["graphs"][0]["outputs"].erase(0);
  EXPECT_EQ(ErrorText([&] { ParseGraph(document.dump(), "g.json"); }),
            "g.json: /graphs/1/inputs/0: value 6 (a) is no output of an earlier graph");
}

TEST(GraphBreakTest, TangentMustBePassedOn) {
  Json document = TwoPairs();
  document["graphs"][2]["outputs"].erase(0);
  EXPECT_EQ(ErrorText([&] { ParseGraph(document.dump(), "g.json"); }),
            "g.json: /graphs/3/inputs/1: value 10 (a) is no output of an earlier graph");
}

}  // namespace
}  // namespace dcsim
