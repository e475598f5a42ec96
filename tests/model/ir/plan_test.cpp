#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/ir/plan_reader.h"
#include "tests/support/error_text.h"
#include "tests/support/row_name.h"

namespace dcsim {
namespace {

/// Two forward ops that may swap, so that an order other than the recorded one is possible.
Graph TwoBranches() {
  return ParseGraphText(R"(
graph branches 1 tokens
param first float32[4]
param second float32[4]
forward
  a: float32[4] = my::op(first)
  b: float32[4] = my::op(second)
  l: float32[] = my::loss(a, b)
  loss l
backward
  tangent t: float32[] of l
  g: float32[4] = my::grad(t)
  gradient first = g
)");
}

Plan UnusualPlan() {
  Plan plan;
  plan.policy = "by-hand";
  plan.ranks = 3;
  plan.options.stage = 3;
  plan.options.communicators = 2;
  plan.options.gradient_clipping = 2.5;
  plan.persistent = {ParamId(1)};
  plan.graphs = {{{OpId(1), OpId(0), OpId(2)}, {{0, {ParamId(1), ParamId(0)}}, {2, {}}}},
                 {{OpId(3)}, {}}};
  return plan;
}

Plan Read(const Json& document) {
  return ReadPlan(document, TwoBranches(), PointerLocator("p"));
}

TEST(PlanTest, PrintedPlanIsReadBack) {
  EXPECT_EQ(Read(PrintPlan(UnusualPlan(), TwoBranches())), UnusualPlan());
}

TEST(PlanTest, OptionsStandBetweenRanksAndDecisions) {
  const Json document = PrintPlan(UnusualPlan(), TwoBranches());
  auto key = document.begin();
  EXPECT_EQ(key++.key(), "format");
  EXPECT_EQ(key++.key(), "policy");
  EXPECT_EQ(key++.key(), "ranks");
  EXPECT_EQ(key++.key(), "stage");
  EXPECT_EQ((--document.end()).key(), "graphs");
}

// Op ids count over all graphs; a file counts within one. Op 3 is the backward's first and only
// op, so its order is the recorded one.
TEST(PlanTest, DecisionsStandByPositionAndName) {
  const Json document = PrintPlan(UnusualPlan(), TwoBranches());
  EXPECT_EQ(document["persistent"].dump(), R"(["second"])");
  EXPECT_EQ(document["graphs"].dump(),
            R"([{"order":[1,0,2],"gathers":[{"position":0,"params":["second","first"]},)"
            R"({"position":2,"params":[]}]},{"order":"recorded","gathers":[]}])");
}

TEST(PlanTest, PersistentParametersAreSortedAndUnique) {
  Json document = PrintPlan(UnusualPlan(), TwoBranches());
  document["persistent"] = {"second", "first", "second"};
  EXPECT_EQ(Read(document).persistent, (std::vector<ParamId>{ParamId(0), ParamId(1)}));
}

/// The forward's gathers as events, in an order that positions alone do not give.
Plan PlanWithEvents() {
  Plan plan = UnusualPlan();
  plan.graphs[0].gathers.clear();
  plan.graphs[0].events = {{GraphEventKind::kGather, 0, {ParamId(1), ParamId(0)}},
                           {GraphEventKind::kWait, 0, {ParamId(1)}},
                           {GraphEventKind::kRelease, 2, {ParamId(1)}}};
  plan.graphs[1].events = {{GraphEventKind::kReduce, 1, {ParamId(0)}}};
  return plan;
}

TEST(PlanTest, EventsStandByPositionKindAndName) {
  const Json document = PrintPlan(PlanWithEvents(), TwoBranches());
  EXPECT_EQ(document["graphs"][0]["events"].dump(),
            R"([{"position":0,"kind":"gather","params":["second","first"]},)"
            R"({"position":0,"kind":"wait","params":["second"]},)"
            R"({"position":2,"kind":"release","params":["second"]}])");
  EXPECT_EQ(Read(document), PlanWithEvents());
}

TEST(PlanTest, FaultyEventsAreReported) {
  Json document = PrintPlan(PlanWithEvents(), TwoBranches());
  document["graphs"][0]["events"][0]["kind"] = "gater";
  document["graphs"][0]["events"][1]["position"] = -1;
  document["graphs"][0]["events"][2].erase("kind");
  document["graphs"][1]["events"] = 5;
  EXPECT_EQ(ErrorText([&] { Read(document); }),
            "p: /graphs/0/events/0/kind: expected gather, wait, release, reduce, reload_shard, "
            "offload_activation, reload_activation or wait_activation, found 'gater', did you mean "
            "'gather'?\n"
            "p: /graphs/0/events/1/position: expected 0 or more\n"
            "p: /graphs/0/events/2: key 'kind' is missing\n"
            "p: /graphs/1/events: expected a list, found 5");
}

struct Break {
  const char* name;
  void (*change)(Json& document);
  const char* message;
};

class PlanFaultTest : public testing::TestWithParam<Break> {};

TEST_P(PlanFaultTest, IsReported) {
  Json document = PrintPlan(UnusualPlan(), TwoBranches());
  GetParam().change(document);
  EXPECT_EQ(ErrorText([&] { Read(document); }), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Fields,
    PlanFaultTest,
    testing::Values(
        Break{"Format", [](Json& d) { d["format"] = "dc-plan-spec/1"; },
              "p: /format: expected a document with \"format\": \"dc-plan/1\", found "
              "\"dc-plan-spec/1\""},
        Break{"NoRanks", [](Json& d) { d.erase("ranks"); }, "p: key 'ranks' is missing"},
        Break{"Ranks0", [](Json& d) { d["ranks"] = 0; },
              "p: /ranks: expected a count from 1 to 1000000"},
        Break{"Ranks1000001", [](Json& d) { d["ranks"] = 1000001; },
              "p: /ranks: expected a count from 1 to 1000000"},
        Break{"NoPersistent", [](Json& d) { d.erase("persistent"); },
              "p: key 'persistent' is missing"},
        Break{"PersistentNoList", [](Json& d) { d["persistent"] = "all"; },
              "p: /persistent: expected a list of parameter names"},
        Break{"UnknownParam", [](Json& d) { d["persistent"][0] = "secnd"; },
              "p: /persistent/0: the graph has no parameter 'secnd', did you mean 'second'?"},
        Break{"SpecKey", [](Json& d) { d["gather_ahead"] = 1; },
              "p: /gather_ahead: unknown key 'gather_ahead'"},
        Break{"StageOutOfRange", [](Json& d) { d["stage"] = 4; },
              "p: /stage: expected a whole number from 1 to 3, found 4"}),
    RowName());

INSTANTIATE_TEST_SUITE_P(
    Graphs,
    PlanFaultTest,
    testing::Values(
        Break{"OneGraphTooFew", [](Json& d) { d["graphs"].erase(1); },
              "p: /graphs: expected one entry for each of the workload's 2 graphs"},
        Break{"NoOrder", [](Json& d) { d["graphs"][0].erase("order"); },
              "p: /graphs/0: key 'order' is missing"},
        Break{"UnknownOrder", [](Json& d) { d["graphs"][0]["order"] = "reverse"; },
              "p: /graphs/0/order: expected \"recorded\" or a list of op positions in the graph"},
        Break{"PositionOfAnotherGraph", [](Json& d) { d["graphs"][1]["order"] = {1}; },
              "p: /graphs/1/order/0: expected a position below 1"},
        Break{"NegativePosition", [](Json& d) { d["graphs"][0]["order"][2] = -1; },
              "p: /graphs/0/order/2: expected a position below 3"},
        Break{"GatherPosition", [](Json& d) { d["graphs"][0]["gathers"][0]["position"] = -1; },
              "p: /graphs/0/gathers/0/position: expected 0 or more"},
        Break{"GatherWithoutParams", [](Json& d) { d["graphs"][0]["gathers"][0].erase("params"); },
              "p: /graphs/0/gathers/0: key 'params' is missing"},
        Break{"GatherOfNoParam", [](Json& d) { d["graphs"][0]["gathers"][0]["params"][1] = "a"; },
              "p: /graphs/0/gathers/0/params/1: the graph has no parameter 'a'"},
        Break{"UnknownKeys",
              [](Json& d) {
                d["graphs"][0]["gathers"][0]["param"] = 1;
                d["graphs"][1]["gather"] = 1;
              },
              "p: /graphs/0/gathers/0/param: unknown key 'param', did you mean 'params'?\n"
              "p: /graphs/1/gather: unknown key 'gather', did you mean 'gathers'?"}),
    RowName());

}  // namespace
}  // namespace dcsim
