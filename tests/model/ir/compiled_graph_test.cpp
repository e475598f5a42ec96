// Compiled forms: launches of Triton kernels among the ops, and memory that is used again.

#include <gtest/gtest.h>

#include "model/ir/graph_reader.h"
#include "tests/support/compiled_document.h"
#include "tests/support/error_text.h"
#include "tests/support/row_name.h"

namespace dcsim {
namespace {

TEST(CompiledGraphTest, LaunchReadsWhatLayThereBefore) {
  const Graph graph = CompiledGraph();
  EXPECT_EQ(graph.backend(), Backend::kInductor);
  EXPECT_EQ(graph.target(OpId(0)), "aten::mm");
  EXPECT_EQ(graph.target(OpId(1)), "relu");
  const Op& relu = graph.op(OpId(1));
  EXPECT_EQ(relu.inputs, std::vector<ValueId>{ValueId(2)});
  EXPECT_EQ(relu.outputs, std::vector<ValueId>{ValueId(3)});
  EXPECT_EQ(relu.launch->writes.front().bytes, Bytes(64));
  const Op& slope = graph.op(OpId(3));
  EXPECT_EQ(slope.inputs, (std::vector<ValueId>{ValueId(1), ValueId(5), ValueId(3)}));
  EXPECT_EQ(graph.kernel(*graph.op(OpId(2)).launch).passes.at("in_ptr0"), 2);
}

TEST(CompiledGraphTest, PrintedFormIsReadBack) {
  const std::string printed = PrintGraph(CompiledGraph());
  EXPECT_EQ(PrintGraph(ParseGraph(printed, "again.json")), printed);
}

TEST(CompiledGraphTest, StandInNumbersItsTensorsBehindTheArguments) {
  const Graph graph = CompiledGraph();
  const std::vector<StandInOp>& total = graph.kernels[1].stand_in;
  EXPECT_EQ(total.front().outputs, std::vector<ValueId>{ValueId(4)});
  EXPECT_EQ(total.back().arguments[1], Argument(ValueId(4)));
  EXPECT_TRUE(total.back().outputs.front().is_none());
}

TEST(CompiledGraphTest, StandInsMayBeLeftOut) {
  Json document = CompiledDocument();
  document["kernels"][0].erase("computes");
  EXPECT_TRUE(ParseGraph(document.dump(), "g.json").kernels.front().stand_in.empty());
}

TEST(CompiledGraphTest, GraphOfOperatorsIsOfNoCompiler) {
  Json document = CompiledDocument();
  document.erase("backend");
  EXPECT_EQ(ErrorText([&] { ParseGraph(document.dump(), "g.json"); }).substr(0, 66),
            "g.json: /graphs/0/ops/1: value 3 (z) reuses memory: expected an ou");
}

struct Break {
  const char* name;
  void (*change)(Json& document);
  const char* message;  // without "g.json"
};

class CompiledFaultTest : public testing::TestWithParam<Break> {};

TEST_P(CompiledFaultTest, IsReportedWithItsPlace) {
  Json document = CompiledDocument();
  GetParam().change(document);
  EXPECT_EQ(ErrorText([&] { ParseGraph(document.dump(), "g.json"); }),
            std::string("g.json") + GetParam().message);
}

Json& Relu(Json& document) {
  return document["graphs"][0]["ops"][1];
}

INSTANTIATE_TEST_SUITE_P(
    Kernels,
    CompiledFaultTest,
    testing::Values(
        Break{"OtherCompiler", [](Json& d) { d["backend"]["name"] = "xla"; },
              ": /backend/name: expected inductor"},
        Break{"NoStage", [](Json& d) { d["backend"]["stages"] = {4}; },
              ": /backend/stages/0: expected a ZeRO stage from 1 to 3"},
        Break{"KernelKind", [](Json& d) { d["kernels"][0]["kind"] = "pointwide"; },
              ": /kernels/0/kind: expected pointwise, reduction or persistent_reduction, found "
              "'pointwide', did you mean 'pointwise'?"},
        Break{"NoConfiguration", [](Json& d) { d["kernels"][0]["configs"] = Json::array(); },
              ": /kernels/0/configs: expected at least one configuration"},
        Break{"Signature", [](Json& d) { d["kernels"][0]["signature"][1] = "xnumel"; },
              ": /kernels/0/signature/1: expected the name and the type of an argument"},
        Break{"KernelKey", [](Json& d) { d["kernels"][0]["load"] = 1; },
              ": /kernels/0/load: unknown key 'load', did you mean 'loads'?"}),
    RowName());

Json& FirstOfStandIn(Json& document) {
  return document["kernels"][0]["computes"][0];
}

INSTANTIATE_TEST_SUITE_P(
    StandIns,
    CompiledFaultTest,
    testing::Values(
        Break{"ComputesNothing", [](Json& d) { d["kernels"][0]["computes"] = Json::array(); },
              ": /kernels/0/computes: expected at least one op"},
        Break{"StandInKey", [](Json& d) { FirstOfStandIn(d)["output"] = 1; },
              ": /kernels/0/computes/0/output: unknown key 'output', did you mean 'outputs'?"},
        Break{"NoSuchSchema", [](Json& d) { FirstOfStandIn(d)["schema"] = 7; },
              ": /kernels/0/computes/0/schema: expected an index into schemas, which has 7 "
              "entries"},
        Break{"TooManyArguments", [](Json& d) { FirstOfStandIn(d)["args"].push_back(1); },
              ": /kernels/0/computes/0: aten::relu takes 1 arguments, found 2"},
        Break{"ReadsANumberOfTheLaunch",
              [](Json& d) {
                FirstOfStandIn(d)["args"][0] = {{"v", 1}};
              },
              ": /kernels/0/computes/0/args/0: 1 is no tensor of the launch, and nothing before "
              "makes it"},
        Break{"ReadsWhatIsMadeLater",
              [](Json& d) {
                FirstOfStandIn(d)["args"][0] = {{"v", 2}};
              },
              ": /kernels/0/computes/0/args/0: 2 is no tensor of the launch, and nothing before "
              "makes it"},
        Break{"SkipsANumber", [](Json& d) { FirstOfStandIn(d)["outputs"] = {3}; },
              ": /kernels/0/computes/0/outputs/0: expected 2, the number of the next tensor"},
        Break{"TooManyOutputs",
              [](Json& d) {
                FirstOfStandIn(d)["outputs"] = {2, nullptr};
              },
              ": /kernels/0/computes/0: aten::relu returns 1 values, found 2"}),
    RowName());

INSTANTIATE_TEST_SUITE_P(
    Launches,
    CompiledFaultTest,
    testing::Values(
        Break{"NoSuchKernel", [](Json& d) { Relu(d)["kernel"] = 3; },
              ": /graphs/0/ops/1/kernel: expected an index into kernels, which has 3 entries"},
        Break{"NoReads", [](Json& d) { Relu(d).erase("reads"); },
              ": /graphs/0/ops/1: key 'reads' is missing"},
        Break{"NegativeBytes", [](Json& d) { Relu(d)["writes"][0][1] = -1; },
              ": /graphs/0/ops/1/writes/0/1: expected bytes of 0 or more"},
        Break{"TooFewArguments", [](Json& d) { Relu(d)["args"].erase(1); },
              ": /graphs/0/ops/1: relu takes 2 arguments, found 1"},
        Break{"NumberForTensor",
              [](Json& d) {
                Relu(d)["args"][1] = {{"v", 1}};
              },
              ": /graphs/0/ops/1/args/1: does not fit 'i32 xnumel' of relu"},
        Break{"ReadsTheFuture", [](Json& d) { Relu(d)["reads"][0][0] = 4; },
              ": /graphs/0/ops/1: value 4 (l) is used before it is produced"},
        Break{"OutputIsNoArgument",
              [](Json& d) {
                Relu(d)["outputs"] = {3, 4};
              },
              ": /graphs/0/ops/1: value 4 (l) is an output and no argument of relu\n"
              "g.json: /graphs/0/ops/2: value 4 (l) is produced twice"},
        Break{"ReadsWhatIsOver",
              [](Json& d) {
                d["graphs"][0]["ops"][2]["reads"].push_back({2, 64});
              },
              ": /graphs/0/ops/2: value 2 (y) is used after its memory has been reused"},
        Break{"ReusesWhatNothingHad", [](Json& d) { d["graphs"][0]["ops"][2]["reuses"] = {4}; },
              ": /graphs/0/ops/2: value 4 (l) reuses memory that nothing has had"},
        Break{"OverwritesAParameter", [](Json& d) { d["values"][3]["storage"] = 0; },
              ": /graphs/0/ops/1: value 3 (z) lies in a storage that exists already and is no "
              "input's"}),
    RowName());

}  // namespace
}  // namespace dcsim
