#include "tools/common/deepspeed_config.h"
#include "tools/common/deepspeed_settings.h"

namespace dcsim {
namespace {

bool ComputesNorm(const ScheduleOptions& options) {
  return options.compute_grad_norm || options.gradient_clipping.has_value();
}

/// What no key of DeepSpeed's says, of a plan that DeepSpeed would not make by itself.
std::vector<std::string> MissingOf(const Plan& plan, const Graph& graph) {
  const ScheduleOptions& options = plan.options;
  std::vector<std::string> missing;
  if (options.stage == 3) {
    missing.push_back(
        "where each gather is issued and which share a launch: DeepCompile's prefetch "
        "pass decides");
    missing.push_back("which " + std::to_string(plan.persistent.size()) + " of " +
                      std::to_string(graph.params.size()) +
                      " parameters stay gathered: its selective_gather pass decides");
  } else if (options.reduce_collective == ReduceCollective::kReduceScatter) {
    missing.push_back("reduce_scatter: DeepCompile's ZeRO-1 and 2 use all-reduce");
  }
  if (options.flush_collectives == FlushCollectives::kOnePerBucket) {
    missing.push_back("one collective a bucket: DeepCompile calls one a parameter");
  }
  if (options.communicators == 2) {
    missing.push_back("two communicators: DeepCompile has one");
  }
  if (options.gather_engine == Engine::kCopyEngine) {
    missing.push_back(
        "gathers by copy engines between two barriers a step: DeepCompile's symmetric_memory has "
        "two a gather");
  }
  if (options.align_tensors) {
    missing.push_back(
        "tensors at multiples of 16 bytes: give the optimizer the parameters of odd size last");
  }
  if (options.fuse_casts) {
    missing.push_back(
        "gathers in the dtype that parameters are cast to: DeepCompile's prefetch pass undoes "
        "them");
  }
  if (options.release == ReleaseMode::kEventOrdered && options.stage == 3) {
    missing.push_back("release by event order: DeepCompile uses record_stream");
  }
  if (options.training.reduction) {
    missing.push_back("the dtype of reductions: DeepCompile reduces gradients in their own");
  }
  if (!ComputesNorm(options) && options.stage == 3) {
    missing.push_back("no norm of the gradient: DeepSpeed's ZeRO-3 computes it in each step");
  }
  for (std::size_t i = 1; i < graph.params.size(); ++i) {
    if (graph.dtype(ParamId(i)) != graph.dtype(ParamId(0))) {
      missing.push_back("parameters of several dtypes: DeepSpeed casts all to one");
      break;
    }
  }
  if (options.allocator == AllocatorMode::kExpandableSegments) {
    missing.push_back("expandable segments: set PYTORCH_ALLOC_CONF=expandable_segments:True");
  }
  return missing;
}

/// The dtypes in which the recording was made, and those of the optimizer.
void AddDTypes(const Plan& plan, const Graph& graph, Json& config) {
  const TrainingOptions& training = plan.options.training;
  const DType dtype = RecordedDType(graph);
  if (dtype == DType::kBFloat16 || dtype == DType::kFloat16) {
    config[dtype == DType::kBFloat16 ? "bf16" : "fp16"] = {{"enabled", true}};
  }
  if (training.master == DType::kBFloat16) {
    config["bf16"]["bf16_master_weights_and_grads"] = true;
  }
  if (training.states == DType::kBFloat16) {
    config["bf16"]["bf16_optimizer_states"] = true;
  }
  if (training.accumulation) {
    config["data_types"] = {{"grad_accum_dtype", DTypeName(*training.accumulation)}};
  }
  const Json autocast = RecordedOption(graph, "autocast");
  if (autocast.is_string()) {
    config["torch_autocast"] = {{"enabled", true}, {"dtype", autocast}};
  }
}

/// PyTorch's kernels by its own parameters.
Json TorchKernelParams(OptimizerKernels kernels) {
  return kernels == OptimizerKernels::kFused
             ? Json{{"fused", true}}
             : Json{{"foreach", kernels == OptimizerKernels::kForeach}};
}

/// The optimizer's section; none for the caller's, which is taken for PyTorch's fused AdamW.
void AddOptimizer(const ScheduleOptions& options, Json& config) {
  const OptimizerAlgorithm algorithm = options.training.algorithm;
  const bool own = options.optimizer == OptimizerKernels::kDeepSpeedFused;
  Json params = own ? Json::object() : TorchKernelParams(options.optimizer);
  if (algorithm == OptimizerAlgorithm::kLion) {
    config["optimizer"] = {{"type", "Lion"}};
  } else if (algorithm == OptimizerAlgorithm::kSgd ||
             algorithm == OptimizerAlgorithm::kSgdMomentum) {
    if (algorithm == OptimizerAlgorithm::kSgdMomentum) {
      params["momentum"] = 0.9;
    }
    config["optimizer"] = {{"type", "SGD"}, {"params", params}};
    config["zero_allow_untested_optimizer"] = true;
  } else if (own || algorithm == OptimizerAlgorithm::kAdam ||
             options.optimizer != OptimizerKernels::kFused) {
    const bool decays = algorithm == OptimizerAlgorithm::kAdamW;
    params["torch_adam"] = !own;
    params["adam_w_mode"] = decays;
    config["optimizer"] = {{"type", decays ? "AdamW" : "Adam"}, {"params", params}};
  }
}

void AddZero(const ScheduleOptions& options, Json& config) {
  Json zero = {{"stage", options.stage}, {"reduce_bucket_size", options.reduce_bucket}};
  if (options.parameter_alignment) {
    zero["parameter_alignment"] = true;
  }
  if (options.stage != 3 && !ComputesNorm(options)) {
    zero["compute_grad_norm"] = false;
  }
  config["zero_optimization"] = std::move(zero);
}

}  // namespace

DeepSpeedOutput ClosestDeepSpeedConfig(const Plan& plan, const Graph& graph) {
  const ScheduleOptions& options = plan.options;
  const std::int64_t micro = RecordedRows(graph).value_or(1);
  DeepSpeedOutput output;
  output.config = {
      {"train_batch_size", micro * options.gradient_accumulation_steps * plan.ranks},
      {"train_micro_batch_size_per_gpu", micro},
      {"gradient_accumulation_steps", options.gradient_accumulation_steps},
  };
  output.config["gradient_clipping"] = options.gradient_clipping.value_or(0.0);
  AddDTypes(plan, graph, output.config);
  AddOptimizer(options, output.config);
  AddZero(options, output.config);
  output.config["compile"] = {{"deepcompile", true}, {"double_buffer", options.double_buffer}};
  output.missing = MissingOf(plan, graph);
  return output;
}

}  // namespace dcsim
