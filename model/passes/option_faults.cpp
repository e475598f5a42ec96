#include <algorithm>
#include <array>

#include "model/graph/sharding.h"
#include "model/ir/optimizer_spec.h"
#include "model/ir/plan_options.h"
#include "model/passes/resolve.h"

namespace dcsim {
namespace {

/// Kernels that an optimizer does not have.
std::string FindKernelFault(const ScheduleOptions& options) {
  const std::string name(OptimizerAlgorithmName(options.training.algorithm));
  const bool sgd = options.training.algorithm == OptimizerAlgorithm::kSgd ||
                   options.training.algorithm == OptimizerAlgorithm::kSgdMomentum;
  if (sgd && options.optimizer == OptimizerKernels::kDeepSpeedFused) {
    return "optimizer: deepspeed-fused is for adamw, adam and lion; DeepSpeed runs torch's " + name;
  }
  const bool passes = options.optimizer == OptimizerKernels::kForeach ||
                      options.optimizer == OptimizerKernels::kForLoop;
  if (passes && !OptimizerSpecOf(options.training.algorithm).has_passes) {
    return "optimizer: " + name + " has one fused kernel, DeepSpeed's; foreach and for_loop are " +
           "torch's passes";
  }
  return {};
}

/// Dtypes that DeepSpeed does not have together.
std::string FindDTypeFault(const ScheduleOptions& options) {
  const TrainingOptions& training = options.training;
  if (training.master != training.states) {
    return "master_weights and optimizer_state_dtype: float32 both, or bfloat16 both; DeepSpeed "
           "keeps one in bfloat16 without the other on the host alone";
  }
  if (training.accumulation && options.stage == 1) {
    return "gradient_accumulation_dtype: float32 is for stages 2 and 3; ZeRO-1 with it is another "
           "optimizer of DeepSpeed's (BF16_Optimizer), which is not modelled";
  }
  if (training.reduction && options.gradient_buckets != GradientBuckets::kEager &&
      options.sharding != Sharding::kFsdp2) {
    return "reduce_dtype is for eager gradient_buckets and fsdp; DeepCompile reduces gradients in "
           "their own dtype";
  }
  return {};
}

std::string FindAlignmentFault(const ScheduleOptions& options) {
  if (options.parameter_alignment && CutByParameter(options)) {
    return "parameter_alignment is for stages 1 and 2 with all_reduce, which cut one flat tensor; "
           "others cut each parameter";
  }
  if (options.parameter_alignment && options.align_tensors) {
    return "parameter_alignment pads parameters in their order, align_tensors puts those of odd "
           "size last; a plan has one of them";
  }
  return {};
}

/// What eager buckets exclude, and what only they have.
std::string FindBucketFault(const ScheduleOptions& options) {
  const bool eager = options.gradient_buckets == GradientBuckets::kEager;
  if (!eager && !options.contiguous_gradients) {
    return "contiguous_gradients: false is for eager gradient_buckets";
  }
  if (options.overlap_comm && (!eager || options.stage == 3 || !options.contiguous_gradients)) {
    return "overlap_comm is for eager gradient_buckets of stages 1 and 2 with "
           "contiguous_gradients; stage 3's are always reduced on their own stream";
  }
  if (!eager && options.flatten != Flatten::kConcatenate) {
    return "flatten: copy is for eager gradient_buckets";
  }
  if (eager && options.gradient_reduction == GradientReduction::kEachMicroStep) {
    return "gradient_reduction: each_micro_step is for DeepCompile's gradient_buckets";
  }
  if (eager && (options.flush_collectives == FlushCollectives::kOnePerBucket ||
                options.buffer_lifetime != BufferLifetime::kStep ||
                options.reduce_collective != ReduceCollective::kAllReduce)) {
    return "gradient_buckets: eager ones are reduced whole and live for a step; reduce_scatter, "
           "one_per_bucket and buffer_lifetime are for DeepCompile's";
  }
  return {};
}

/// What the plan's stage excludes.
std::string FindStageFault(const ScheduleOptions& options) {
  const bool one_per_bucket = options.flush_collectives == FlushCollectives::kOnePerBucket;
  if (one_per_bucket && CutByParameter(options)) {
    return "flush_collectives: one_per_bucket is for all_reduce in stages 1 and 2; where "
           "partitions are cut parameter by parameter, one reduce-scatter over a bucket would "
           "mix them";
  }
  if (options.gather_engine == Engine::kCopyEngine && options.stage != 3) {
    return "gather_engine: copy_engine is for stage 3, whose parameters lie in other ranks' memory";
  }
  if (options.fuse_casts && (options.stage != 3 || options.gather_engine != Engine::kNccl)) {
    return "fuse_casts is for stage 3 and gather_engine nccl: each rank casts its shard before the "
           "gather, where other stages gather nothing and copy engines read the shards themselves";
  }
  if (options.offload_parameters &&
      (options.stage != 3 || options.gather_engine != Engine::kNccl)) {
    return "offload_parameters is for stage 3 and gather_engine nccl: shards leave the GPU, where "
           "other stages keep parameters whole and copy engines read them";
  }
  return {};
}

/// Options that say how ZeRO does its work, or what FSDP2 is not known with.
std::string FindFsdpFault(const ScheduleOptions& options) {
  constexpr std::array<std::string_view, 10> kKnown = {
      "stage",        "backend",
      "sharding",     "gradient_accumulation_steps",
      "optimizer",    "master_weights",
      "allocator",    "optimizer_algorithm",
      "reduce_dtype", "optimizer_state_dtype"};
  if (options.sharding != Sharding::kFsdp2) {
    return {};
  }
  if (options.stage != 3) {
    return "stage: fsdp cuts parameters, gradients and optimizer states: 3";
  }
  if (RunsDeepSpeedKernel(options)) {
    return "optimizer: fsdp runs torch's optimizers, not DeepSpeed's kernels";
  }
  const ScheduleOptions defaults;
  for (const PlanOption& option : PlanOptions()) {
    const bool known = std::find(kKnown.begin(), kKnown.end(), option.key) != kKnown.end();
    if (!known && option.print(option, options) != option.print(option, defaults)) {
      return std::string(option.key) + ": fsdp does not have it";
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> FindOptionFaults(const ScheduleOptions& options) {
  for (const auto find : {FindFsdpFault, FindKernelFault, FindDTypeFault, FindAlignmentFault,
                          FindStageFault, FindBucketFault}) {
    if (std::string fault = find(options); !fault.empty()) {
      return {std::move(fault)};
    }
  }
  return {};
}

std::string FindParamFault(const ScheduleOptions& options, const Graph& graph) {
  for (const FlatGroup& group : FlatGroups(graph)) {
    if (options.training.master == DType::kBFloat16 && group.trainable > 0 &&
        group.dtype != DType::kBFloat16) {
      return "master_weights: bfloat16 is for bfloat16 parameters; this workload trains " +
             std::string(DTypeName(group.dtype)) + " ones";
    }
  }
  return {};
}

}  // namespace dcsim
