#include <gtest/gtest.h>

#include "tests/support/deepspeed_files.h"
#include "tools/common/deepspeed_config.h"

namespace dcsim {
namespace {

// A search on any recording writes a file that the same recording takes.
TEST(DeepSpeedOutputTest, OutputComesBackOnEachKindOfRecording) {
  const auto check = [](DType dtype, const Json& options, const TrainingOptions& training) {
    Graph graph = Recording(options);
    for (const Param& param : graph.params) {
      graph.values[param.value.index()].dtype = dtype;
    }
    PlanSpec spec = TinySpec(2);
    spec.options.training = training;
    const Json config = ClosestDeepSpeedConfig(Resolve(spec, graph, 4), graph).config;
    ASSERT_EQ(Fault(config, graph), "");
    EXPECT_EQ(SpecOf(config, graph).options.training, training);
    EXPECT_EQ(SpecOf(config, graph).options.optimizer, spec.options.optimizer);
  };
  check(DType::kFloat32, Json::object(), {});
  check(DType::kFloat16, Json::object(), {});
  check(DType::kFloat32, {{"autocast", "bfloat16"}}, {});
  check(
      DType::kBFloat16, Json::object(),
      {OptimizerAlgorithm::kSgdMomentum, DType::kBFloat16, DType::kBFloat16, DType::kFloat32, {}});
}

// What was written is read back, for every option that DeepSpeed has.
TEST(DeepSpeedOutputTest, OutputComesBack) {
  const Graph graph = Recording();
  for (int stage = 1; stage <= 3; ++stage) {
    PlanSpec spec = TinySpec(stage);
    spec.options.gradient_accumulation_steps = 5;
    spec.options.double_buffer = stage == 2;
    if (stage == 3) {
      spec.options.gradient_clipping = 2.0;
    }
    const DeepSpeedOutput output = ClosestDeepSpeedConfig(Resolve(spec, graph, 4), graph);
    const ScheduleOptions read = SpecOf(output.config).options;
    EXPECT_EQ(read.stage, stage);
    EXPECT_EQ(read.gradient_accumulation_steps, 5);
    EXPECT_EQ(read.double_buffer, spec.options.double_buffer);
    EXPECT_EQ(read.gradient_clipping, spec.options.gradient_clipping);
    EXPECT_EQ(read.reduce_bucket, spec.options.reduce_bucket);
  }
}

TEST(DeepSpeedOutputTest, WhatDeepSpeedCannotSayIsListed) {
  const Graph graph = TwoLayers();
  PlanSpec spec = TinySpec(2);
  spec.options.reduce_collective = ReduceCollective::kReduceScatter;
  spec.options.communicators = 2;
  const auto missing = ClosestDeepSpeedConfig(Resolve(spec, graph, 4), graph).missing;
  ASSERT_EQ(missing.size(), 2U);
  EXPECT_TRUE(missing[0].starts_with("reduce_scatter"));
  EXPECT_TRUE(missing[1].starts_with("two communicators"));
  EXPECT_TRUE(ClosestDeepSpeedConfig(Resolve(TinySpec(1), graph, 4), graph).missing.empty());
}

}  // namespace
}  // namespace dcsim
