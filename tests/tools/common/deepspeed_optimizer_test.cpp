#include "tools/common/deepspeed_optimizer.h"

#include <gtest/gtest.h>

#include "tests/support/deepspeed_files.h"

namespace dcsim {
namespace {

// DeepSpeed's FusedAdam and FusedLion, PyTorch's SGD; with a state, and without.
TEST(DeepSpeedOptimizerTest, OptimizersHaveTheirStatesAndKernels) {
  const auto training = [](const char* type, const Json& params, OptimizerAlgorithm algorithm,
                           OptimizerKernels kernels) {
    Json config = Base(2);
    config["optimizer"] = {{"type", type}, {"params", params}};
    config["zero_allow_untested_optimizer"] = true;
    const ScheduleOptions options = SpecOf(config).options;
    EXPECT_EQ(options.training.algorithm, algorithm) << type << params;
    EXPECT_EQ(options.optimizer, kernels) << type << params;
  };
  const Json none = Json::object();
  const auto deepspeed = OptimizerKernels::kDeepSpeedFused;
  training("AdamW", none, OptimizerAlgorithm::kAdamW, deepspeed);
  training("Adam", none, OptimizerAlgorithm::kAdamW, deepspeed);
  training("adam", {{"adam_w_mode", false}}, OptimizerAlgorithm::kAdam, deepspeed);
  training("AdamW", {{"torch_adam", true}}, OptimizerAlgorithm::kAdamW, OptimizerKernels::kForeach);
  training("Lion", none, OptimizerAlgorithm::kLion, deepspeed);
  training("SGD", none, OptimizerAlgorithm::kSgd, OptimizerKernels::kForeach);
  training("SGD", {{"momentum", 0.9}, {"fused", true}}, OptimizerAlgorithm::kSgdMomentum,
           OptimizerKernels::kFused);
}

TEST(DeepSpeedOptimizerTest, UntestedOptimizersNeedTheirKey) {
  Json config = Base(2);
  config["optimizer"] = {{"type", "SGD"}};
  EXPECT_TRUE(Has(Fault(config), "optimizer/type: DeepSpeed's ZeRO takes SGD with"));
  config = Compiled(3, {{"offload_opt_states", true}});
  config["optimizer"] = {{"type", "SGD"}, {"params", {{"momentum", 0.9}}}};
  config["zero_allow_untested_optimizer"] = true;
  EXPECT_TRUE(Has(Fault(config), "offload_opt_states: not modelled for SGD with momentum"));
}

TEST(DeepSpeedOptimizerTest, DTypesOfTheOptimizerAndReductions) {
  Json config = Base(2);
  config["data_types"] = {{"grad_accum_dtype", "fp32"}};
  config["communication_data_type"] = "fp32";
  config["zero_optimization"]["parameter_alignment"] = true;
  config["bf16"].update({{"bf16_master_weights_and_grads", true}, {"bf16_optimizer_states", true}});
  const ScheduleOptions options = SpecOf(config).options;
  EXPECT_EQ(options.training.accumulation, DType::kFloat32);
  EXPECT_EQ(options.training.reduction, DType::kFloat32);
  EXPECT_EQ(options.training.master, DType::kBFloat16);
  EXPECT_EQ(options.training.states, DType::kBFloat16);
  EXPECT_TRUE(options.parameter_alignment);
  config["zero_optimization"]["stage"] = 1;
  EXPECT_TRUE(Has(Fault(config), "grad_accum_dtype: not modelled for ZeRO-1"));
  config["data_types"] = {{"grad_accum_dtype", "fp16"}};
  EXPECT_TRUE(Has(Fault(config), "grad_accum_dtype: not modelled: expected"));
  config["bf16"].erase("bf16_optimizer_states");
  EXPECT_TRUE(Has(Fault(config), "bf16_master_weights_and_grads: not modelled without"));
}

// Where nothing clips, ZeRO-1 and 2 compute the norm unless the file says no; ZeRO-3 always does.
TEST(DeepSpeedOptimizerTest, TheNormIsComputedThoughNothingClips) {
  for (int stage = 1; stage <= 3; ++stage) {
    Json config = Base(stage);
    EXPECT_FALSE(SpecOf(config).options.compute_grad_norm);  // DeepSpeed clips by default
    config["gradient_clipping"] = 0;
    EXPECT_TRUE(SpecOf(config).options.compute_grad_norm);
    config["zero_optimization"]["compute_grad_norm"] = false;
    EXPECT_EQ(Fault(config).empty(), stage != 3);
  }
}

}  // namespace
}  // namespace dcsim
