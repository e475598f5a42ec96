#include "tools/common/deepspeed_config.h"

#include <gtest/gtest.h>

#include "model/base/error.h"
#include "model/ir/plan_reader.h"
#include "model/passes/resolve.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

/// TwoLayers has bfloat16 parameters and two rows.
Json Base(int stage) {
  return {{"train_micro_batch_size_per_gpu", 2},
          {"bf16", {{"enabled", true}}},
          {"zero_optimization", {{"stage", stage}}}};
}

Json Compiled(int stage, const Json& keys = Json::object()) {
  Json config = Base(stage);
  config["compile"] = {{"deepcompile", true}};
  config["compile"].update(keys);
  return config;
}

Graph Recording(const Json& options = Json::object()) {
  Graph graph = TwoLayers();
  graph.name = "two";
  graph.notes.options = options.dump();
  graph.notes.command = "python -m dcrecord two.py:build -o traces/two";
  return graph;
}

DeepSpeedSpec Read(const Json& document, const Graph& graph = Recording(), int ranks = 4) {
  return ReadDeepSpeedConfig(document, PointerLocator("ds.json"), {graph, ranks, PolicyNames()});
}

PlanSpec SpecOf(const Json& document, const Graph& graph = Recording()) {
  return ReadPlanSpec(Read(document, graph).spec, PointerLocator("spec"));
}

std::string Fault(const Json& document, const Graph& graph = Recording()) {
  try {
    Read(document, graph);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string Notes(const Json& document, const Graph& graph = Recording()) {
  return Join(Read(document, graph).notes, "\n");
}

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

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

TEST(DeepSpeedConfigTest, OffloadedParametersNeedBothKeys) {
  Json config = Compiled(3, {{"offload_parameters", true}});
  EXPECT_TRUE(Has(Fault(config), "compile/offload_parameters: moves nothing unless"));
  config["zero_optimization"]["offload_param"] = {{"device", "cpu"}};
  EXPECT_TRUE(SpecOf(config).options.offload_parameters);
  config["compile"]["offload_parameters"] = false;
  EXPECT_TRUE(Has(Fault(config), "offload_param/device: not modelled without"));
  config["zero_optimization"]["offload_param"] = {{"pin_memory", true}};
  EXPECT_EQ(Fault(config), "");
}

// 4 ranks, two rows: 24 of all are three micro-steps.
TEST(DeepSpeedConfigTest, BatchSizesGiveTheAccumulation) {
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

TEST(DeepSpeedConfigTest, AnotherMicroBatchIsRefusedWithTheCommand) {
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

TEST(DeepSpeedConfigTest, AnotherDTypeIsRefusedWithTheCommand) {
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

TEST(DeepSpeedConfigTest, ARecordingWithAutocastNeedsItInTheFile) {
  EXPECT_TRUE(Has(Fault(Base(1), Recording({{"autocast", "bfloat16"}})),
                  "the file trains with autocast to none"));
}

TEST(DeepSpeedConfigTest, WhatChangesTheStepIsRefusedByName) {
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

TEST(DeepSpeedConfigTest, WhatIsOffIsNoFault) {
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

// transformers/integrations/deepspeed.py; a hidden size of 10.
TEST(DeepSpeedConfigTest, AutoIsFilledAsTheTrainerDoes) {
  Json config = Base(3);
  config.update({{"train_batch_size", "auto"},
                 {"train_micro_batch_size_per_gpu", "auto"},
                 {"gradient_accumulation_steps", "auto"},
                 {"gradient_clipping", "auto"},
                 {"bf16", {{"enabled", "auto"}}},
                 {"fp16", {{"enabled", "auto"}}}});
  config["zero_optimization"].update({{"reduce_bucket_size", "auto"},
                                      {"stage3_prefetch_bucket_size", "auto"},
                                      {"stage3_param_persistence_threshold", "auto"}});
  EXPECT_TRUE(Has(Fault(config), "hidden size, which this recording does not hold"));
  const Graph graph = Recording({{"hidden_size", 10}});
  const PlanSpec spec = SpecOf(config, graph);
  EXPECT_EQ(spec.options.reduce_bucket, 100);
  EXPECT_EQ(spec.eager_gathers.prefetch_bucket, 90);
  EXPECT_EQ(spec.eager_gathers.persistence_threshold, 100);
  EXPECT_EQ(spec.options.gradient_clipping, 1.0);
  EXPECT_TRUE(Has(Notes(config, graph), "zero_optimization/reduce_bucket_size 100"));
}

TEST(DeepSpeedConfigTest, NullsAndZerosClipNothing) {
  Json config = Base(1);
  for (const Json& value : {Json(nullptr), Json(0), Json(0.0)}) {
    config["gradient_clipping"] = value;
    EXPECT_EQ(SpecOf(config).options.gradient_clipping, std::nullopt);
  }
}

TEST(DeepSpeedConfigTest, OnlyDeepSpeedsFilesAreRecognised) {
  EXPECT_TRUE(IsDeepSpeedConfig({{"zero_optimization", Json::object()}}));
  EXPECT_FALSE(IsDeepSpeedConfig({{"format", "dc-plan-spec/1"}, {"compile", 1}}));
  EXPECT_FALSE(IsDeepSpeedConfig({{"stage", 3}}));
  EXPECT_FALSE(IsDeepSpeedConfig(Json::array()));
}

// DeepSpeed's FusedAdam and FusedLion, PyTorch's SGD; with a state, and without.
TEST(DeepSpeedConfigTest, OptimizersHaveTheirStatesAndKernels) {
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

TEST(DeepSpeedConfigTest, UntestedOptimizersNeedTheirKey) {
  Json config = Base(2);
  config["optimizer"] = {{"type", "SGD"}};
  EXPECT_TRUE(Has(Fault(config), "optimizer/type: DeepSpeed's ZeRO takes SGD with"));
  config = Compiled(3, {{"offload_opt_states", true}});
  config["optimizer"] = {{"type", "SGD"}, {"params", {{"momentum", 0.9}}}};
  config["zero_allow_untested_optimizer"] = true;
  EXPECT_TRUE(Has(Fault(config), "offload_opt_states: not modelled for SGD with momentum"));
}

TEST(DeepSpeedConfigTest, DTypesOfTheOptimizerAndReductions) {
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
TEST(DeepSpeedConfigTest, TheNormIsComputedThoughNothingClips) {
  for (int stage = 1; stage <= 3; ++stage) {
    Json config = Base(stage);
    EXPECT_FALSE(SpecOf(config).options.compute_grad_norm);  // DeepSpeed clips by default
    config["gradient_clipping"] = 0;
    EXPECT_TRUE(SpecOf(config).options.compute_grad_norm);
    config["zero_optimization"]["compute_grad_norm"] = false;
    EXPECT_EQ(Fault(config).empty(), stage != 3);
  }
}

TEST(DeepSpeedConfigTest, EagerAutocastIsRefused) {
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

// A search on any recording writes a file that the same recording takes.
TEST(DeepSpeedConfigTest, OutputComesBackOnEachKindOfRecording) {
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
TEST(DeepSpeedConfigTest, OutputComesBack) {
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
