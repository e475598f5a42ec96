#include "tools/common/deepspeed_config.h"

#include <gtest/gtest.h>

#include "tests/support/deepspeed_files.h"

namespace dcsim {
namespace {

// Nothing but what the file decides is in the spec: the policy's defaults are the spec reader's.
TEST(DeepSpeedConfigTest, DeepCompileHasItsPolicysDefaults) {
  for (int stage = 1; stage <= 3; ++stage) {
    const Json spec = {{"format", "dc-plan-spec/1"},
                       {"policy", "deepcompile-0.19.8"},
                       {"stage", stage},
                       {"gradient_clipping", 1.0}};
    EXPECT_EQ(SpecOf(Compiled(stage)), ReadPlanSpec(spec, PointerLocator("spec")));
  }
}

TEST(DeepSpeedConfigTest, OverlapIsSaidToStagesOneAndTwoOnly) {
  for (const int stage : {1, 2, 3}) {
    Json config = Base(stage);
    config["zero_optimization"]["overlap_comm"] = true;
    EXPECT_EQ(SpecOf(config).options.overlap_comm, stage != 3);
    EXPECT_FALSE(SpecOf(Base(stage)).options.overlap_comm);
  }
}

TEST(DeepSpeedConfigTest, AMistypedSectionIsNamedWhereItsStageIsMissed) {
  Json config = Base(3);
  config["zero_optimizaton"] = config["zero_optimization"];
  config.erase("zero_optimization");
  EXPECT_TRUE(Has(Fault(config),
                  "no key that DeepSpeed 0.19.8 looks for: zero_optimizaton, did "
                  "you mean 'zero_optimization'?"))
      << Fault(config);
}

TEST(DeepSpeedConfigTest, WithoutDeepCompileThePolicyIsEager) {
  Json config = Base(3);
  config["zero_optimization"].update({{"stage3_prefetch_bucket_size", 7},
                                      {"param_persistence_threshold", 8},
                                      {"stage3_max_live_parameters", 9},
                                      {"max_reuse_distance", 1e15},
                                      {"reduce_bucket_size", 2e8},
                                      {"contiguous_gradients", false},
                                      {"overlap_comm", true}});
  const PlanSpec spec = SpecOf(config);
  EXPECT_EQ(spec.policy, "deepspeed-eager");
  EXPECT_EQ(spec.eager_gathers.prefetch_bucket, 7);
  EXPECT_EQ(spec.eager_gathers.persistence_threshold, 8);
  EXPECT_EQ(spec.eager_gathers.max_live, 9);
  EXPECT_EQ(spec.eager_gathers.max_reuse_distance, 1'000'000'000'000'000);
  EXPECT_EQ(spec.options.reduce_bucket, 200'000'000);
  EXPECT_FALSE(spec.options.contiguous_gradients);
  EXPECT_EQ(spec.options.gradient_buckets, GradientBuckets::kEager);
}

TEST(DeepSpeedConfigTest, KeysOfCompileBecomeOptions) {
  const PlanSpec spec = SpecOf(Compiled(3, {{"double_buffer", false},
                                            {"sync_before_reduce", true},
                                            {"sync_after_allgather", true},
                                            {"offload_activation", true}}));
  EXPECT_FALSE(spec.options.double_buffer);
  EXPECT_TRUE(spec.options.synchronize.before_reduce);
  EXPECT_TRUE(spec.options.synchronize.after_allgather);
  EXPECT_TRUE(spec.offload_activation);
  const auto passes = SpecOf(Compiled(3, {{"offload_opt_states", true}})).passes;
  EXPECT_EQ(passes, (std::vector<std::string>{"offload_adam_states_for_init", "zero3_compile",
                                              "offload_adam_states"}));
  EXPECT_EQ(SpecOf(Compiled(2, {{"offload_opt_states", true}})).passes, std::nullopt);
}

TEST(DeepSpeedConfigTest, UnknownKeysAreDeepSpeeds) {
  Json config = Base(3);
  config["zero_optimization"]["reduce_buket_size"] = 1;
  EXPECT_TRUE(Has(Fault(config),
                  "has no key 'reduce_buket_size' here, did you mean "
                  "'reduce_bucket_size'?"))
      << Fault(config);
  Json top = Base(3);
  top["gradient_cliping"] = 1;
  EXPECT_TRUE(Has(Notes(top), "gradient_cliping, did you mean 'gradient_clipping'?"));
}

TEST(DeepSpeedConfigTest, ValuesAreTakenAsPydanticTakesThem) {
  Json config = Compiled(2);
  config["zero_optimization"] = {{"stage", "2"}, {"reduce_bucket_size", "200_000_000"}};
  config["compile"]["deepcompile"] = "true";
  EXPECT_EQ(SpecOf(config).options.reduce_bucket, 200'000'000);
  config["zero_optimization"]["reduce_bucket_size"] = 15099494.4;
  EXPECT_TRUE(Has(Fault(config), "expected a whole number of 1 or more, found 15099494.4"));
}

TEST(DeepSpeedConfigTest, KeysWithoutEffectAreNamedWithTheReason) {
  Json config = Compiled(1);
  config["zero_optimization"]["overlap_comm"] = true;
  config["scheduler"] = {{"type", "WarmupLR"}};
  const std::string notes = Notes(config);
  EXPECT_TRUE(Has(notes, "zero_optimization/overlap_comm (only for eager)")) << notes;
  EXPECT_TRUE(Has(notes, "scheduler (learning, not time or memory)")) << notes;
  EXPECT_TRUE(Has(notes, "optimizer: none in the file")) << notes;
  EXPECT_TRUE(Has(notes, "gradient_clipping: 1.0")) << notes;
}

// Each step of DeepSpeed compares the norm with 0, which it cannot do with null.
TEST(DeepSpeedConfigTest, ZerosClipNothingAndNullsAreRefused) {
  Json config = Base(1);
  for (const Json& value : {Json(0), Json(0.0), Json(false)}) {
    config["gradient_clipping"] = value;
    EXPECT_EQ(SpecOf(config).options.gradient_clipping, std::nullopt);
  }
  config["gradient_clipping"] = nullptr;
  EXPECT_TRUE(Has(Fault(config), "dc-sim expects a number, found null")) << Fault(config);
}

TEST(DeepSpeedConfigTest, OnlyDeepSpeedsFilesAreRecognised) {
  EXPECT_TRUE(IsDeepSpeedConfig({{"zero_optimization", Json::object()}}));
  EXPECT_FALSE(IsDeepSpeedConfig({{"format", "dc-plan-spec/1"}, {"compile", 1}}));
  EXPECT_FALSE(IsDeepSpeedConfig({{"stage", 3}}));
  EXPECT_FALSE(IsDeepSpeedConfig(Json::array()));
}

}  // namespace
}  // namespace dcsim
