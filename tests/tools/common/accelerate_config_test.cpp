#include "tools/common/accelerate_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_text.h"
#include "tests/tools/temporary_folder.h"
#include "tools/common/file.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

AccelerateConfig Read(const std::string& text, const std::string& path = "accelerate.yaml") {
  return ReadAccelerateConfig(YamlDocument::Parse(text, path), path);
}

std::string Fault(const std::string& text, const std::string& path = "accelerate.yaml") {
  return ErrorText([&] { Read(text, path); });
}

const std::string head = "distributed_type: DEEPSPEED\n";

TEST(AccelerateConfigTest, IsToldByItsKeys) {
  EXPECT_TRUE(IsAccelerateConfig(Json{{"distributed_type", "NO"}}));
  EXPECT_TRUE(IsAccelerateConfig(Json{{"deepspeed_config", Json::object()}}));
  EXPECT_FALSE(IsAccelerateConfig(Json{{"zero_optimization", Json::object()}}));
  EXPECT_FALSE(IsAccelerateConfig(Json{{"format", "dc-plan-spec/1"}, {"distributed_type", "NO"}}));
}

// DeepSpeedPlugin's defaults: stage 2, and "auto", which the script's Accelerator fills in.
TEST(AccelerateConfigTest, LeftOutKeysAreThePlugins) {
  const Json expected = {{"train_micro_batch_size_per_gpu", "auto"},
                         {"gradient_accumulation_steps", "auto"},
                         {"gradient_clipping", "auto"},
                         {"zero_optimization", {{"stage", 2}}}};
  EXPECT_EQ(Read(head).deepspeed.json(), expected);
}

TEST(AccelerateConfigTest, KeysBecomeDeepSpeeds) {
  const AccelerateConfig config =
      Read(head +
           "mixed_precision: bf16\nnum_processes: 8\nnum_machines: 2\ndeepspeed_config:\n"
           "  zero_stage: 3\n  gradient_accumulation_steps: 4\n  gradient_clipping: 0.5\n"
           "  offload_optimizer_device: cpu\n  offload_param_device: none\n"
           "  zero3_init_flag: true\n  zero3_save_16bit_model: true\n");
  const Json expected = {{"train_micro_batch_size_per_gpu", "auto"},
                         {"gradient_accumulation_steps", 4},
                         {"gradient_clipping", 0.5},
                         {"zero_optimization",
                          {{"stage", 3},
                           {"offload_optimizer", {{"device", "cpu"}}},
                           {"offload_param", {{"device", "none"}}},
                           {"stage3_gather_16bit_weights_on_model_save", true}}},
                         {"bf16", {{"enabled", true}}}};
  EXPECT_EQ(config.deepspeed.json(), expected);
  EXPECT_EQ(config.processes, 8);
  EXPECT_THAT(config.notes, ElementsAre("no effect on this step's time and memory: num_machines, "
                                        "deepspeed_config/zero3_init_flag"));
}

TEST(AccelerateConfigTest, KeysHaveTheirPlaces) {
  const Locator locate = Read(head + "deepspeed_config:\n  zero_stage: 3\n").deepspeed.locator();
  EXPECT_THAT(locate("/zero_optimization/stage"), HasSubstr("accelerate.yaml:3:3"));
  EXPECT_THAT(locate("/train_micro_batch_size_per_gpu"), HasSubstr("accelerate.yaml:2:1"));
}

TEST(AccelerateConfigTest, WhatNoPlanSaysIsRefusedByName) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"distributed_type: FSDP\n", "distributed_type: not modelled: expected DEEPSPEED"},
      {head + "mixed_precision: fp8\n", "no plan computes in fp8"},
      {head + "mixed_precision: bf61\n", "expected no, fp16 or bf16, found bf61"},
      {head + "use_cpu: true\n", "use_cpu: not modelled"},
      {head + "num_process: 4\n", "did you mean 'num_processes'?"},
      {head + "num_processes: 0\n", "expected a whole number of at least 1, found 0"},
      {head + "num_processes: 2.5\n", "expected a whole number of at least 1, found 2.5"},
      {head + "dynamo_config:\n  dynamo_backend: INDUCTOR\n", "dynamo_config: not modelled"},
      {head + "parallelism_config:\n  parallelism_config_tp_size: 2\n", "plans are data-parallel"},
      {head + "compute_environment: AMAZON_SAGEMAKER\n", "expected LOCAL_MACHINE"},
      {head + "deepspeed_config: 3\n", "deepspeed_config: expected an object"},
      {head + "deepspeed_config:\n  deepspeed_moe_layer_cls_names: Block\n", "not modelled"}};
  for (const auto& [text, expected] : faults) {
    EXPECT_THAT(Fault(text), HasSubstr(expected)) << text;
  }
}

// accelerate config writes all of them.
TEST(AccelerateConfigTest, KeysThatAskForNothingAreTaken) {
  const AccelerateConfig config = Read(
      "compute_environment: LOCAL_MACHINE\ndebug: false\ndistributed_type: DEEPSPEED\n"
      "downcast_bf16: 'no'\nenable_cpu_affinity: false\nmachine_rank: 0\n"
      "main_training_function: main\nmixed_precision: 'no'\nrdzv_backend: static\n"
      "same_network: true\ntpu_env: []\ntpu_use_cluster: false\ntpu_use_sudo: false\n"
      "use_cpu: false\ndynamo_config: {}\nfp8_config: {}\n");
  EXPECT_FALSE(config.deepspeed.json().contains("bf16"));
  EXPECT_FALSE(config.processes.has_value());
}

TEST(AccelerateConfigTest, AMisspeltKeyOfTheSectionIsNoted) {
  EXPECT_THAT(Read(head + "deepspeed_config:\n  zero_stag: 3\n").notes,
              ElementsAre("no key that accelerate looks for: deepspeed_config/zero_stag, did you "
                          "mean 'zero_stage'?"));
}

class AccelerateFileTest : public testing::Test {
 protected:
  /// What is read beside a DeepSpeed file of this content.
  std::string Path(const Json& deepspeed) {
    WriteFile(folder / "ds.json", deepspeed.dump());
    return folder / "accelerate.yaml";
  }
  static std::string Text(const std::string& more = "") {
    return head + more + "deepspeed_config:\n  deepspeed_config_file: ds.json\n";
  }

  TemporaryFolder folder;
};

TEST_F(AccelerateFileTest, ADeepSpeedFileIsLookedForBesideIt) {
  const std::string path =
      Path({{"zero_optimization", {{"stage", 1}}}, {"bf16", {{"enabled", "auto"}}}});
  const AccelerateConfig config = Read(Text("mixed_precision: bf16\n"), path);
  EXPECT_EQ(config.deepspeed.json()["zero_optimization"]["stage"], 1);
  EXPECT_EQ(config.deepspeed.json()["bf16"]["enabled"], true);
  EXPECT_EQ(config.deepspeed.json()["gradient_accumulation_steps"], 1);
}

TEST_F(AccelerateFileTest, WhatAccelerateRefusesBesideAFileIsRefused) {
  const std::string path = Path({{"zero_optimization", {{"stage", 1}}}});
  EXPECT_THAT(Fault(Text() + "  zero_stage: 3\n", path),
              HasSubstr("accelerate refuses it beside deepspeed_config_file"));
  EXPECT_THAT(Fault(head + "deepspeed_config:\n  deepspeed_config_file: none.json\n", path),
              HasSubstr("no such file none.json"));
  EXPECT_THAT(Fault(Text(), Path({{"train_batch_size", 4}})),
              HasSubstr("has no zero_optimization"));
  EXPECT_THAT(Fault(Text("mixed_precision: bf16\n"),
                    Path({{"zero_optimization", {{"stage", 1}}}, {"fp16", {{"enabled", true}}}})),
              HasSubstr("bf16 contradicts fp16 of the DeepSpeed file"));
}

}  // namespace
}  // namespace dcsim
