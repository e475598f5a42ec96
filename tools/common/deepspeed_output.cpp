#include "tools/common/deepspeed_config.h"
#include "tools/common/deepspeed_settings.h"

namespace dcsim {
namespace {

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
  if (options.optimizer != OptimizerKernels::kFused) {
    missing.push_back("the optimizer's kernels: choose them where the optimizer is made");
  }
  if (options.allocator == AllocatorMode::kExpandableSegments) {
    missing.push_back("expandable segments: set PYTORCH_ALLOC_CONF=expandable_segments:True");
  }
  return missing;
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
  const DType dtype = graph.params.empty() ? DType::kBFloat16 : graph.dtype(ParamId(0));
  if (dtype == DType::kBFloat16 || dtype == DType::kFloat16) {
    output.config[dtype == DType::kBFloat16 ? "bf16" : "fp16"] = {{"enabled", true}};
  }
  output.config["zero_optimization"] = {{"stage", options.stage},
                                        {"reduce_bucket_size", options.reduce_bucket}};
  output.config["compile"] = {{"deepcompile", true}, {"double_buffer", options.double_buffer}};
  output.missing = MissingOf(plan, graph);
  return output;
}

}  // namespace dcsim
