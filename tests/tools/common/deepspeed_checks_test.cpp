#include "tools/common/deepspeed_checks.h"

#include <gtest/gtest.h>

#include "tests/support/deepspeed_files.h"

namespace dcsim {
namespace {

TEST(DeepSpeedChecksTest, OffloadedParametersNeedBothKeys) {
  Json config = Compiled(3, {{"offload_parameters", true}});
  EXPECT_TRUE(Has(Fault(config), "compile/offload_parameters: not modelled: moves nothing unless"));
  config["zero_optimization"]["offload_param"] = {{"device", "cpu"}};
  EXPECT_TRUE(SpecOf(config).options.offload_parameters);
  config["compile"]["offload_parameters"] = false;
  EXPECT_TRUE(Has(Fault(config), "offload_param/device: not modelled without"));
  config["zero_optimization"]["offload_param"] = {{"pin_memory", true}};
  EXPECT_EQ(Fault(config), "");
}

// 4 ranks, two rows: 24 of all are three micro-steps.
TEST(DeepSpeedChecksTest, BatchSizesGiveTheAccumulation) {
  Json config = Base(1);
  config["train_batch_size"] = 24;
  EXPECT_EQ(SpecOf(config).options.gradient_accumulation_steps, 3);
  config.erase("train_micro_batch_size_per_gpu");
  config["gradient_accumulation_steps"] = 3;
  EXPECT_EQ(SpecOf(config).options.gradient_accumulation_steps, 3);
  config["train_batch_size"] = 25;
  EXPECT_TRUE(Has(Fault(config), "train_batch_size: expected"));
  EXPECT_TRUE(Has(Fault({{"zero_optimization", {{"stage", 1}}}}), "is missing"));
}

TEST(DeepSpeedChecksTest, AnotherMicroBatchIsRefusedWithTheCommand) {
  Json config = Base(1);
  config["train_micro_batch_size_per_gpu"] = 8;
  const std::string fault = Fault(config);
  EXPECT_TRUE(
      Has(fault, "the file trains 8 rows a GPU in each micro-step, the recording two has 2"))
      << fault;
  EXPECT_TRUE(Has(fault,
                  "python -m dcrecord two.py:build --batch 8 --name two-batch8 -o "
                  "traces/two-batch8"))
      << fault;
}

TEST(DeepSpeedChecksTest, AnotherDTypeIsRefusedWithTheCommand) {
  Json config = Base(1);
  config["bf16"] = {{"enabled", false}};
  EXPECT_TRUE(Has(Fault(config), "--dtype float32 --name two-float32")) << Fault(config);
  config["fp16"] = {{"enabled", true}};
  EXPECT_TRUE(Has(Fault(config), "fp16/enabled: the file trains float16 parameters"));
  config["bf16"] = {{"enabled", true}};
  EXPECT_TRUE(Has(Fault(config), "DeepSpeed refuses fp16 and bf16 together"));
  config.erase("fp16");
  config["torch_autocast"] = {{"enabled", true}, {"dtype", "bfloat16"}};
  EXPECT_TRUE(Has(Fault(config), "--autocast bfloat16"));
}

TEST(DeepSpeedChecksTest, ARecordingWithAutocastNeedsItInTheFile) {
  EXPECT_TRUE(Has(Fault(Base(1), Recording({{"autocast", "bfloat16"}})),
                  "the file trains with autocast to none"));
}

TEST(DeepSpeedChecksTest, WhatChangesTheStepIsRefusedByName) {
  const auto refused = [](const std::string& section, const Json& keys) {
    Json config = Base(3);
    Json& place = section.empty() ? config : config[section];
    place.update(keys);
    return Fault(config);
  };
  EXPECT_TRUE(
      Has(refused("zero_optimization", {{"overlap_comm", false}}), "overlap_comm: not mod"));
  EXPECT_TRUE(Has(refused("zero_optimization", {{"offload_optimizer", {{"device", "cpu"}}}}),
                  "offload_optimizer/device: not modelled"));
  EXPECT_TRUE(Has(refused("zero_optimization", {{"zero_hpz_partition_size", 2}}), "not modelled"));
  EXPECT_TRUE(
      Has(refused("", {{"tensor_parallel", {{"autotp_size", 2}}}}), "autotp_size: not mod"));
  EXPECT_TRUE(Has(refused("", {{"sequence_parallel_size", 2}}), "sequence_parallel_size: not mod"));
  EXPECT_TRUE(Has(refused("", {{"optimizer", {{"type", "Adagrad"}}}}), "optimizer \"Adagrad\""));
  EXPECT_TRUE(Has(refused("", {{"sparse_gradients", false}}), "DeepSpeed 0.19.8 refuses this key"));
  EXPECT_TRUE(
      Has(refused("zero_optimization", {{"mics_shard_size", 2}}), "refuses this key: MiCS"));
  EXPECT_TRUE(
      Has(refused("zero_optimization", {{"sub_group_size", 1}}), "sub_group_size: not mod"));
}

TEST(DeepSpeedChecksTest, WhatIsOffIsNoFault) {
  Json config = Base(3);
  config["zero_optimization"].update({{"offload_optimizer", {{"device", "none"}}},
                                      {"offload_param", nullptr},
                                      {"zero_hpz_partition_size", 1},
                                      {"zero_quantized_weights", false}});
  config.update({{"tensor_parallel", {{"autotp_size", 1}}},
                 {"sequence_parallel_size", 1},
                 {"pipeline", Json::object()},
                 {"communication_data_type", "bf16"},
                 {"data_types", {{"grad_accum_dtype", "bf16"}}}});
  EXPECT_EQ(Fault(config), "");
}

TEST(DeepSpeedChecksTest, EagerAutocastIsRefused) {
  Graph graph = Recording({{"autocast", "bfloat16"}});
  for (Value& value : graph.values) {
    value.dtype = DType::kFloat32;
  }
  Json config = Base(1);
  config.erase("bf16");
  config["torch_autocast"] = {{"enabled", true}, {"dtype", "bfloat16"}};
  EXPECT_TRUE(Has(Fault(config, graph), "torch_autocast/enabled: not modelled without"));
  config["compile"] = {{"deepcompile", true}};
  EXPECT_EQ(Fault(config, graph), "");
}

// A bfloat16 recording whose second parameter is float32: DeepSpeed would cast it.
TEST(DeepSpeedChecksTest, AMixedRecordingIsRefusedWithTheParameter) {
  for (const std::size_t other : {0U, 1U}) {
    Graph graph = Recording();
    const Param& param = graph.params[other];
    graph.values[param.value.index()].dtype = DType::kFloat32;
    const std::string fault = Fault(Base(1), graph);
    EXPECT_TRUE(Has(fault, "has float32 ones (" + param.name + ")")) << fault;
    Json config = Base(1);
    config.erase("bf16");
    EXPECT_TRUE(Has(Fault(config, graph), "has bfloat16 ones (")) << Fault(config, graph);
  }
}

// DeepSpeed 0.19.8 takes any key at the top level; these are asked for with a purpose.
TEST(DeepSpeedChecksTest, KeysThatNobodyReadAreRefusedWhereTheyAskForSomething) {
  for (const char* key : {"fp8", "fp8_training", "torchao", "autotp_size", "sequence_parallel",
                          "moe", "expert_parallel_size", "num_experts", "offload_optimizer",
                          "context_parallel_size", "pipeline_parallel_size"}) {
    Json config = Base(2);
    config[key] = {{"enabled", true}};
    EXPECT_TRUE(Has(Fault(config), "does not look for this key")) << key;
    config[key] = 2;
    EXPECT_TRUE(Has(Fault(config), std::string(key) + ": DeepSpeed 0.19.8 does not look")) << key;
    for (const Json& off : {Json(false), Json(1), Json(), Json{{"enabled", false}}}) {
      config[key] = off;
      EXPECT_EQ(Fault(config), "") << key << " " << off;
      EXPECT_TRUE(Has(Notes(config), std::string("looks for: ") + key)) << key << " " << off;
    }
  }
  Json config = Base(2);
  config["data_types"]["fp8"] = true;
  EXPECT_TRUE(Has(Fault(config), "data_types/fp8: DeepSpeed 0.19.8 does not look"));
}

TEST(DeepSpeedChecksTest, AnEmptyZenFlowSectionTurnsItOn) {
  Json config = Base(2);
  config["zero_optimization"]["zenflow"] = Json::object();
  EXPECT_TRUE(Has(Fault(config), "zenflow: not modelled")) << Fault(config);
  config["zero_optimization"]["zenflow"] = nullptr;
  EXPECT_EQ(Fault(config), "");
}

}  // namespace
}  // namespace dcsim
