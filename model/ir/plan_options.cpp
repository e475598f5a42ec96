#include "model/ir/plan_options.h"

#include <array>
#include <cmath>

namespace dcsim {
namespace {

constexpr std::array<std::string_view, 2> kReduceNames = {"all_reduce", "reduce_scatter"};
constexpr std::array<std::string_view, 2> kFlushNames = {"per_parameter", "one_per_bucket"};
constexpr std::array<std::string_view, 2> kEngineNames = {"nccl", "copy_engine"};
constexpr std::array<std::string_view, 2> kBackendNames = {"aten", "inductor"};
constexpr std::array<std::string_view, 2> kBucketsNames = {"deepcompile", "eager"};
constexpr std::array<std::string_view, 2> kFlattenNames = {"concatenate", "copy"};
constexpr std::array<std::string_view, 3> kLifetimeNames = {"step", "pr_8036", "permanent"};
constexpr std::array<std::string_view, 3> kReductionNames = {"each_backward", "coalesced",
                                                             "each_micro_step"};
constexpr std::array<std::string_view, 2> kHandlingNames = {"lean", "deepspeed"};
constexpr std::array<std::string_view, 2> kReleaseNames = {"event_ordered", "record_stream"};
constexpr std::array<std::string_view, 5> kAlgorithmNames = {"adamw", "adam", "sgd", "sgd-momentum",
                                                             "lion"};
constexpr std::array<std::string_view, 4> kOptimizerNames = {"fused", "foreach", "for_loop",
                                                             "deepspeed-fused"};
constexpr std::array<std::string_view, 2> kStateDTypeNames = {"float32", "bfloat16"};
constexpr std::string_view kOwnDType = "model";  // the parameters'
constexpr std::array<std::string_view, 2> kAccumulationNames = {kOwnDType, "float32"};
constexpr std::array<std::string_view, 4> kReductionDTypeNames = {kOwnDType, "float32", "float16",
                                                                  "bfloat16"};
constexpr std::array<std::string_view, 2> kAllocatorNames = {"default", "expandable_segments"};
constexpr std::array<std::string_view, 2> kPeriodNames = {"step", "micro_step"};
constexpr std::array<std::string_view, kOptimizerTensors> kTensorNames = {"exp_avg", "exp_avg_sq",
                                                                          "hp_param"};

/// A whole number from `least` to `most`.
void ReadRange(ObjectReader& object, std::string_view key, int least, int most, int& target) {
  std::int64_t value = 0;
  if (!object.Optional(key, ReadInteger, value)) {
    return;
  }
  if (value < least || value > most) {
    object.faults().Add(object.At(key), "expected a whole number from " + std::to_string(least) +
                                            " to " + std::to_string(most) + ", found " +
                                            std::to_string(value));
    return;
  }
  target = static_cast<int>(value);
}

void ReadClipping(ObjectReader& object, std::optional<double>& target) {
  const Json* value = object.Find("gradient_clipping");
  if (value == nullptr || *value == "none") {
    return;
  }
  const bool positive = value->is_number() && value->get<double>() > 0;
  if (!positive) {
    object.faults().Add(object.At("gradient_clipping"), "expected a norm above 0, or none");
    return;
  }
  target = value->get<double>();
}

void ReadBucket(ObjectReader& object, std::int64_t& target) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (object.Optional("reduce_bucket", ReadElements, target) && (target < 1 || target > kMost)) {
    object.faults().Add(object.At("reduce_bucket"), "expected from 1 to 1.1e12 elements");
  }
}

/// One of the names: of a dtype, or kOwnDType.
void ReadDType(ObjectReader& object,
               std::string_view key,
               std::span<const std::string_view> names,
               std::optional<DType>& target) {
  std::size_t choice = names.size();
  if (object.OptionalChoice(key, names, choice)) {
    target = FindDType(names[choice]);
  }
}

void ReadTraining(ObjectReader& object, TrainingOptions& training) {
  object.OptionalChoice("optimizer_algorithm", kAlgorithmNames, training.algorithm);
  const auto read = [&object](std::string_view key, DType& target) {
    std::optional<DType> dtype = target;
    ReadDType(object, key, kStateDTypeNames, dtype);
    target = *dtype;
  };
  read("master_weights", training.master);
  read("optimizer_state_dtype", training.states);
  ReadDType(object, "gradient_accumulation_dtype", kAccumulationNames, training.accumulation);
  ReadDType(object, "reduce_dtype", kReductionDTypeNames, training.reduction);
}

void PrintTraining(const TrainingOptions& training, Json& document) {
  const auto name = [](const std::optional<DType>& dtype) {
    return dtype ? DTypeName(*dtype) : kOwnDType;
  };
  document["optimizer_algorithm"] = OptimizerAlgorithmName(training.algorithm);
  document["master_weights"] = DTypeName(training.master);
  document["optimizer_state_dtype"] = DTypeName(training.states);
  document["gradient_accumulation_dtype"] = name(training.accumulation);
  document["reduce_dtype"] = name(training.reduction);
}

template <typename Enum, std::size_t kCount>
std::string NameOf(const std::array<std::string_view, kCount>& names, Enum value) {
  return std::string(names[static_cast<std::size_t>(value)]);
}

}  // namespace

std::span<const std::string_view> EngineNames() {
  return kEngineNames;
}

std::string_view OptimizerAlgorithmName(OptimizerAlgorithm algorithm) {
  return kAlgorithmNames[static_cast<std::size_t>(algorithm)];
}

std::span<const std::string_view> BackendNames() {
  return kBackendNames;
}

std::span<const std::string_view> OptimizerTensorNames() {
  return kTensorNames;
}

std::span<const std::string_view> TrainingKeys() {
  static constexpr std::array<std::string_view, 5> kKeys = {
      "optimizer_algorithm", "master_weights", "optimizer_state_dtype",
      "gradient_accumulation_dtype", "reduce_dtype"};
  return kKeys;
}

void ReadScheduleOptions(ObjectReader& object, ScheduleOptions& options) {
  constexpr int kMostMicroSteps = 65535;
  object.Require("stage");
  ReadRange(object, "stage", 1, 3, options.stage);
  object.OptionalChoice("backend", kBackendNames, options.backend);
  ReadRange(object, "gradient_accumulation_steps", 1, kMostMicroSteps,
            options.gradient_accumulation_steps);
  ReadBucket(object, options.reduce_bucket);
  object.Optional("double_buffer", ReadBool, options.double_buffer);
  object.OptionalChoice("reduce_collective", kReduceNames, options.reduce_collective);
  object.OptionalChoice("flush_collectives", kFlushNames, options.flush_collectives);
  object.OptionalChoice("gradient_buckets", kBucketsNames, options.gradient_buckets);
  object.Optional("contiguous_gradients", ReadBool, options.contiguous_gradients);
  object.Optional("overlap_comm", ReadBool, options.overlap_comm);
  object.OptionalChoice("flatten", kFlattenNames, options.flatten);
  object.OptionalChoice("buffer_lifetime", kLifetimeNames, options.buffer_lifetime);
  object.OptionalChoice("gradient_reduction", kReductionNames, options.gradient_reduction);
  ReadRange(object, "communicators", 1, 2, options.communicators);
  object.OptionalChoice("gather_engine", kEngineNames, options.gather_engine);
  object.Optional("fuse_casts", ReadBool, options.fuse_casts);
  object.Optional("align_tensors", ReadBool, options.align_tensors);
  object.Optional("sync_before_allgather", ReadBool, options.synchronize.before_allgather);
  object.Optional("sync_after_allgather", ReadBool, options.synchronize.after_allgather);
  object.Optional("sync_before_reduce", ReadBool, options.synchronize.before_reduce);
  object.Optional("sync_after_reduce", ReadBool, options.synchronize.after_reduce);
  object.OptionalChoice("release", kReleaseNames, options.release);
  ReadClipping(object, options.gradient_clipping);
  object.Optional("compute_grad_norm", ReadBool, options.compute_grad_norm);
  object.OptionalChoice("gradient_handling", kHandlingNames, options.gradient_handling);
  object.Optional("parameter_alignment", ReadBool, options.parameter_alignment);
  ReadTraining(object, options.training);
  object.OptionalChoice("optimizer", kOptimizerNames, options.optimizer);
  object.OptionalChoice("allocator", kAllocatorNames, options.allocator);
  object.OptionalChoice("offload_period", kPeriodNames, options.offload_period);
  object.Optional("offload_parameters", ReadBool, options.offload_parameters);
}

void PrintScheduleOptions(const ScheduleOptions& options, Json& document) {
  document["stage"] = options.stage;
  document["backend"] = NameOf(kBackendNames, options.backend);
  document["gradient_accumulation_steps"] = options.gradient_accumulation_steps;
  document["reduce_bucket"] = std::to_string(options.reduce_bucket) + " elements";
  document["double_buffer"] = options.double_buffer;
  document["reduce_collective"] = NameOf(kReduceNames, options.reduce_collective);
  document["flush_collectives"] = NameOf(kFlushNames, options.flush_collectives);
  document["gradient_buckets"] = NameOf(kBucketsNames, options.gradient_buckets);
  document["contiguous_gradients"] = options.contiguous_gradients;
  if (options.overlap_comm) {
    document["overlap_comm"] = true;
  }
  document["flatten"] = NameOf(kFlattenNames, options.flatten);
  document["buffer_lifetime"] = NameOf(kLifetimeNames, options.buffer_lifetime);
  document["gradient_reduction"] = NameOf(kReductionNames, options.gradient_reduction);
  document["communicators"] = options.communicators;
  document["gather_engine"] = NameOf(kEngineNames, options.gather_engine);
  document["fuse_casts"] = options.fuse_casts;
  document["align_tensors"] = options.align_tensors;
  document["sync_before_allgather"] = options.synchronize.before_allgather;
  document["sync_after_allgather"] = options.synchronize.after_allgather;
  document["sync_before_reduce"] = options.synchronize.before_reduce;
  document["sync_after_reduce"] = options.synchronize.after_reduce;
  document["release"] = NameOf(kReleaseNames, options.release);
  document["gradient_clipping"] =
      options.gradient_clipping ? Json(*options.gradient_clipping) : Json("none");
  document["compute_grad_norm"] = options.compute_grad_norm;
  if (options.gradient_handling != GradientHandling::kLean) {
    document["gradient_handling"] = NameOf(kHandlingNames, options.gradient_handling);
  }
  document["parameter_alignment"] = options.parameter_alignment;
  PrintTraining(options.training, document);
  document["optimizer"] = NameOf(kOptimizerNames, options.optimizer);
  document["allocator"] = NameOf(kAllocatorNames, options.allocator);
  document["offload_period"] = NameOf(kPeriodNames, options.offload_period);
  document["offload_parameters"] = options.offload_parameters;
}

}  // namespace dcsim
