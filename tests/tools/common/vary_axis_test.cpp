#include "tools/common/vary_axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_text.h"

namespace dcsim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(VaryAxisTest, CommasInsideOfListsMapsAndQuotesSeparateNothing) {
  EXPECT_THAT(ParseAxes({"passes=[a, b],default"}).front().values,
              ElementsAre("[a, b]", "default"));
  EXPECT_THAT(
      ParseAxes({"cluster.inter_node={bus_bandwidth: 1 GB/s, latency: 2 us}"}).front().values,
      ElementsAre("{bus_bandwidth: 1 GB/s, latency: 2 us}"));
  EXPECT_THAT(ParseAxes({"cluster.name='a,b', c"}).front().values, ElementsAre("'a,b'", "c"));
  EXPECT_THAT(ParseAxes({"reduce_bucket=50e6 elements, 5e8 elements"}).front().values,
              ElementsAre("50e6 elements", "5e8 elements"));
}

TEST(VaryAxisTest, EachKeySetsItsOption) {
  StepOptions options;
  for (const VaryAxis& axis : ParseAxes(
           {"batch=4", "seq=8", "gpus=2", "cluster=c", "cluster.gpu.memory=8 GB", "stage=2"})) {
    SetAxis(axis, axis.values.front(), options);
  }
  EXPECT_EQ(options.sizes.batch, 4);
  EXPECT_EQ(options.sizes.sequence, 8);
  EXPECT_EQ(options.gpus, 2);
  EXPECT_EQ(options.cluster, "c");
  EXPECT_THAT(options.cluster_overrides, ElementsAre("gpu.memory=8 GB"));
  EXPECT_THAT(options.overrides, ElementsAre("stage=2"));
}

struct FaultRow {
  std::vector<std::string> texts;
  const char* expected;
};

TEST(VaryAxisTest, FaultsNameTheOptionAndWhatWasExpected) {
  const FaultRow rows[] = {
      {{"stage"}, "--vary stage: expected key=values, such as batch=1,2,4"},
      {{"=1"}, "--vary =1: expected key=values, such as batch=1,2,4"},
      {{"stage="}, "--vary stage=: expected a value between commas, found an empty text"},
      {{"stage=1, ,2"}, "--vary stage=1, ,2: expected a value between commas, found an empty text"},
      {{"stage=1,1"}, "--vary stage=1,1: holds '1' twice"},
      {{"gpus=1,x"}, "--vary gpus=1,x: expected whole numbers from 1 to 1000000000, found 'x'"},
      {{"batch=0"}, "--vary batch=0: expected whole numbers from 1 to 1000000000, found '0'"},
      {{"stgae=1"}, "--vary stgae=1: unknown key 'stgae', did you mean 'stage'?"},
      {{"bacth=1"}, "--vary bacth=1: unknown key 'bacth', did you mean 'batch'?"},
      {{"format=dc-plan/1"}, "unknown key 'format'"},
      {{"stage=1", "stage=2"}, "--vary stage=2: stage is varied twice; give all values at once"},
  };
  for (const FaultRow& row : rows) {
    EXPECT_THAT(ErrorText([&] { ParseAxes(row.texts); }), HasSubstr(row.expected));
  }
}

TEST(VaryAxisTest, WhatAnOptionGivesDoesNotVary) {
  StepOptions base;
  base.sizes = {.batch = 1, .sequence = 2};
  base.gpus = 2;
  base.cluster = "c";
  base.overrides = {"stage=2"};
  base.cluster_overrides = {"nodes=2"};
  struct Row {
    std::string text;
    std::string option;
  };
  const std::vector<Row> rows = {{"batch=4", "--batch"}, {"seq=4", "--seq"},
                                 {"gpus=4", "--gpus"},   {"cluster=d", "--cluster"},
                                 {"stage=1", "--set"},   {"cluster.nodes=3", "--cluster-set"}};
  for (const Row& row : rows) {
    EXPECT_THAT(ErrorText([&] { RejectDoubleAxes(ParseAxes({row.text}), base); }),
                HasSubstr(": " + row.option + " gives it one value already"));
  }
  RejectDoubleAxes(ParseAxes({"gather_ahead=1", "cluster.gpus_per_node=2"}), base);
}

}  // namespace
}  // namespace dcsim
