#include "tools/common/deepspeed_config.h"

#include <array>

#include <gtest/gtest.h>

#include "model/passes/resolve.h"
#include "tests/support/error_text.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

constexpr std::array<std::string_view, 2> kPolicies = {"plain-1", "deepcompile-9.9.9"};

DeepSpeedSpec Read(const Json& document, int ranks = 4) {
  return ReadDeepSpeedConfig(document, PointerLocator("ds.json"), kPolicies, ranks);
}

TEST(DeepSpeedConfigTest, KeysBecomeOptions) {
  const PlanSpec spec = Read({{"zero_optimization", {{"stage", 2}, {"reduce_bucket_size", 2e8}}},
                              {"gradient_accumulation_steps", 3},
                              {"gradient_clipping", 0.5},
                              {"compile", {{"deepcompile", true}, {"double_buffer", false}}}})
                            .spec;
  EXPECT_EQ(spec.options.stage, 2);
  EXPECT_EQ(spec.options.reduce_bucket, 200'000'000);
  EXPECT_EQ(spec.options.gradient_accumulation_steps, 3);
  EXPECT_EQ(spec.options.gradient_clipping, 0.5);
  EXPECT_FALSE(spec.options.double_buffer);
  EXPECT_EQ(spec.policy, "deepcompile-9.9.9");
}

TEST(DeepSpeedConfigTest, WithoutDeepCompileThePolicyIsPlain) {
  EXPECT_EQ(Read({{"zero_optimization", {{"stage", 3}}}}).spec.policy, "plain-1");
}

TEST(DeepSpeedConfigTest, OffloadedStatesBecomePassesOfStage3) {
  const auto read = [](int stage, bool deepcompile) {
    return Read({{"zero_optimization", {{"stage", stage}}},
                 {"compile", {{"deepcompile", deepcompile}, {"offload_opt_states", true}}}})
        .spec;
  };
  EXPECT_EQ(read(3, true).passes,
            (std::vector<std::string>{"offload_adam_states_for_init", "zero3_compile",
                                      "offload_adam_states"}));
  EXPECT_EQ(read(3, true).options.offload_period, OffloadPeriod::kMicroStep);
  EXPECT_EQ(read(2, true).passes, std::nullopt);
  EXPECT_EQ(read(3, false).passes, std::nullopt);
}

TEST(DeepSpeedConfigTest, OffloadedActivationsAreStage3s) {
  const auto read = [](int stage) {
    return Read({{"zero_optimization", {{"stage", stage}}},
                 {"compile", {{"deepcompile", true}, {"offload_activation", true}}}})
        .spec.offload_activation;
  };
  EXPECT_TRUE(read(3));
  EXPECT_FALSE(read(2));
}

// deepspeed/runtime/constants.py of 0.19.8: GRADIENT_CLIPPING_DEFAULT = 1.0; reduce_bucket_size
// 5e8.
TEST(DeepSpeedConfigTest, DefaultsAreDeepSpeeds) {
  const DeepSpeedSpec read = Read({{"zero_optimization", {{"stage", 3}}}});
  EXPECT_EQ(read.spec.options.gradient_clipping, 1.0);
  EXPECT_EQ(read.spec.options.reduce_bucket, 500'000'000);
  EXPECT_EQ(Read({{"zero_optimization", {{"stage", 3}}}, {"gradient_clipping", 0.0}})
                .spec.options.gradient_clipping,
            std::nullopt);
}

// 96 samples of all, 4 a GPU on 4 ranks: 6 micro-steps.
TEST(DeepSpeedConfigTest, BatchSizesGiveTheAccumulation) {
  const Json config = {{"zero_optimization", {{"stage", 1}}},
                       {"train_batch_size", 96},
                       {"train_micro_batch_size_per_gpu", 4}};
  EXPECT_EQ(Read(config).spec.options.gradient_accumulation_steps, 6);
  EXPECT_NE(ErrorText([&] { Read(config, 5); }).find("train_batch_size"), std::string::npos);
}

TEST(DeepSpeedConfigTest, FaultsNameKeyAndNearestName) {
  const std::string text = ErrorText([] {
    Read({{"zero_optimization",
           {{"stage", 3}, {"reduce_buket_size", 1}, {"offload_optimizer", {{"device", "cpu"}}}}},
          {"compile", {{"deepcompil", true}}},
          {"gradient_accumulation_steps", "auto"}});
  });
  EXPECT_NE(text.find("did you mean 'reduce_bucket_size'"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean 'deepcompile'"), std::string::npos) << text;
  EXPECT_NE(text.find("offload_optimizer: is not modelled"), std::string::npos) << text;
  EXPECT_NE(text.find("\"auto\""), std::string::npos) << text;
}

TEST(DeepSpeedConfigTest, WhatIsOffIsNoFault) {
  EXPECT_EQ(Read({{"zero_optimization",
                   {{"stage", 3},
                    {"offload_optimizer", {{"device", "none"}}},
                    {"offload_param", nullptr},
                    {"zero_hpz_partition_size", 1},
                    {"zero_quantized_weights", false}}}})
                .spec.options.stage,
            3);
}

TEST(DeepSpeedConfigTest, KeysWithoutEffectAreNamed) {
  const auto notes = Read({{"zero_optimization", {{"stage", 3}, {"overlap_comm", true}}},
                           {"compile", {{"deepcompile", true}}},
                           {"gradient_clipping", 1.0},
                           {"tensorboard", Json::object()}})
                         .notes;
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_NE(notes[0].find("tensorboard"), std::string::npos);
  EXPECT_NE(notes[1].find("overlap_comm"), std::string::npos);
}

TEST(DeepSpeedConfigTest, OnlyDeepSpeedsFilesAreRecognised) {
  EXPECT_TRUE(IsDeepSpeedConfig({{"zero_optimization", Json::object()}}));
  EXPECT_FALSE(IsDeepSpeedConfig({{"format", "dc-plan-spec/1"}, {"compile", 1}}));
  EXPECT_FALSE(IsDeepSpeedConfig({{"stage", 3}}));
  EXPECT_FALSE(IsDeepSpeedConfig(Json::array()));
}

// What was written is read back, for every option that DeepSpeed has.
TEST(DeepSpeedConfigTest, OutputComesBack) {
  const Graph graph = TwoLayers();
  for (int stage = 1; stage <= 3; ++stage) {
    PlanSpec spec = TinySpec(stage);
    spec.options.gradient_accumulation_steps = 5;
    spec.options.double_buffer = stage == 2;
    if (stage == 3) {
      spec.options.gradient_clipping = 2.0;
    }
    const DeepSpeedOutput output = ClosestDeepSpeedConfig(Resolve(spec, graph, 4), graph);
    EXPECT_EQ(Read(output.config).spec.options, spec.options);
  }
}

TEST(DeepSpeedConfigTest, WhatDeepSpeedCannotSayIsListed) {
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
