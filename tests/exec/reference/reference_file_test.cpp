#include "exec/reference/reference_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/document.h"
#include "model/ir/graph_text.h"
#include "tests/support/error_text.h"
#include "tests/support/row_name.h"

namespace dcsim::exec {
namespace {

using testing::ElementsAre;

Graph OneParam() {
  return ParseGraphText(R"(
graph one 2 tokens
param w float32[3]
param f float32[3] frozen
input x float32[2]
forward
  l: float32[] = my::loss(x, w, f)
  loss l
backward of 0
  tangent t: float32[] of l
  g: float32[3] = my::grad(t)
  gradient w = g
)");
}

/// Two ranks with a micro-step each, one step.
Json ValidReference() {
  Json document = Json::parse(R"json({
 "format": "dc-reference/1", "workload": "one", "graph": "", "recorder": {}, "device": "cpu",
 "seed": 7, "ranks": 2, "accumulation": 1, "optimizer": {"lr": 0.0001},
 "steps": [{"loss": 2.5, "losses": [[2.0], [3.0]],
            "gradients": [{"param": 0, "name": "w", "norm": 1.5, "hash": "00000000000000ff",
                           "projections": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]}]}]
})json");
  document["graph"] = HexDigits(OneParam().hash);
  return document;
}

TEST(ReferenceFileTest, ReadsWhatPythonWrites) {
  const Reference reference = ParseReference(ValidReference().dump(), OneParam(), "r.json");
  EXPECT_EQ(reference.seed, 7U);
  EXPECT_EQ(reference.ranks, 2);
  EXPECT_EQ(reference.accumulation, 1);
  EXPECT_EQ(reference.device, "cpu");
  ASSERT_EQ(reference.steps.size(), 1U);
  EXPECT_THAT(reference.steps[0].losses, ElementsAre(ElementsAre(2.0), ElementsAre(3.0)));
  ASSERT_EQ(reference.steps[0].gradients.size(), 1U);
  const Fingerprint& fingerprint = reference.steps[0].gradients[0].fingerprint;
  EXPECT_EQ(fingerprint.norm, 1.5);
  EXPECT_EQ(fingerprint.hash, 0xffU);
  EXPECT_EQ(fingerprint.projections[15], 15);
}

struct FaultRow {
  std::string name;
  std::string pointer;
  Json value;
  std::string message;
};

const std::vector<FaultRow>& Faults() {
  static const std::vector<FaultRow> rows = {
      {"Format", "/format", "dc-reference/2", "r.json: /format: "},
      {"Graph", "/graph", "0123456789abcdef",
       "r.json: /graph: the reference is of graph 0123456789abcdef, the workload's is "},
      {"Seed", "/seed", "7", "r.json: /seed: expected a whole number"},
      {"NoRanks", "/ranks", 0, "r.json: /ranks: expected a count from 1 to 1000000"},
      {"Accumulation", "/accumulation", 1.5, "r.json: /accumulation: expected a whole number"},
      {"OtherKey", "/stepz", 1, "r.json: /stepz: unknown key 'stepz', did you mean 'steps'?"},
      {"Steps", "/steps", 3, "r.json: /steps: expected a list"},
      {"Losses", "/steps/0/losses/1/0", "3", "r.json: /steps/0/losses/1/0: expected a number"},
      {"LossesOfARank", "/steps/0/losses/0", 2.0,
       "r.json: /steps/0/losses/0: expected a list of numbers"},
      {"LossesOfOtherRanks", "/steps/0/losses", Json::parse("[[2.0]]"),
       "r.json: /steps/0/losses: expected 2 lists, one a rank"},
      {"LossesOfOtherMicroSteps", "/steps/0/losses/1", Json::parse("[3.0, 4.0]"),
       "r.json: /steps/0/losses/1: expected 1 numbers, one a micro-step"},
      {"Param", "/steps/0/gradients/0/param", 2,
       "r.json: /steps/0/gradients/0/param: expected an index into the graph's params"},
      {"FrozenParam", "/steps/0/gradients/0/param", 1,
       "r.json: /steps/0/gradients/0/param: f has no gradient"},
      {"Hash", "/steps/0/gradients/0/hash", "0xff",
       "r.json: /steps/0/gradients/0/hash: expected 16 hexadecimal digits"},
      {"LongHash", "/steps/0/gradients/0/hash", "100000000000000ff",
       "r.json: /steps/0/gradients/0/hash: expected 16 hexadecimal digits"},
      {"Projections", "/steps/0/gradients/0/projections", Json::parse("[1, 2]"),
       "r.json: /steps/0/gradients/0/projections: expected 16 numbers"},
  };
  return rows;
}

class ReferenceFaultTest : public testing::TestWithParam<FaultRow> {};

TEST_P(ReferenceFaultTest, NamesTheField) {
  Json document = ValidReference();
  document[Json::json_pointer(GetParam().pointer)] = GetParam().value;
  const std::string text = document.dump();
  EXPECT_THAT(ErrorText([&] { ParseReference(text, OneParam(), "r.json"); }),
              testing::StartsWith(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(Fields, ReferenceFaultTest, testing::ValuesIn(Faults()), RowName());

TEST(ReferenceFileTest, MissingKeysAreNamed) {
  for (const std::string key : {"graph", "seed", "ranks", "accumulation", "device", "steps"}) {
    Json document = ValidReference();
    document.erase(key);
    EXPECT_THAT(ErrorText([&] { ParseReference(document.dump(), OneParam(), "r.json"); }),
                testing::HasSubstr("'" + key + "'"));
  }
}

TEST(ReferenceFileTest, OtherTextIsNoReference) {
  EXPECT_THAT(ErrorText([] { ParseReference("losses", OneParam(), "r.json"); }),
              testing::StartsWith("r.json:1:"));
}

}  // namespace
}  // namespace dcsim::exec
