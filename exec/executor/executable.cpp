#include "exec/executor/executable.h"

namespace dcsim::exec {

std::string FindUnexecutable(const ScheduleOptions& options) {
  const TrainingOptions& training = options.training;
  const bool fsdp = options.sharding == Sharding::kFsdp2;
  if (fsdp && options.optimizer == OptimizerKernels::kForeach) {
    return "optimizer foreach: of policy fsdp, dc-run executes fused and for_loop";
  }
  const std::string name(OptimizerAlgorithmName(training.algorithm));
  if (training.algorithm != OptimizerAlgorithm::kAdamW) {
    return "optimizer_algorithm " + name + ": dc-run executes adamw";
  }
  if (options.gradient_handling == GradientHandling::kDeepSpeed) {
    return "gradient_handling deepspeed: dc-run executes lean";
  }
  if (options.optimizer == OptimizerKernels::kDeepSpeedFused) {
    return "optimizer deepspeed-fused: dc-run executes torch's kernels: fused, foreach, for_loop";
  }
  if (training.master != DType::kFloat32 || training.accumulation ||
      (training.reduction && !fsdp)) {
    return "master_weights, optimizer_state_dtype, gradient_accumulation_dtype and reduce_dtype: "
           "dc-run keeps float32 master weights and states, and gradients in the parameters' dtype";
  }
  if (options.parameter_alignment) {
    return "parameter_alignment: dc-run lays parameters side by side; align_tensors has them "
           "aligned";
  }
  return "";
}

std::string FindUnexecutable(const Graph& graph) {
  for (const TritonKernel& kernel : graph.kernels) {
    if (kernel.stand_in.empty()) {
      return "kernel " + kernel.name + " has no stand-in, by which CPU ranks run it";
    }
  }
  return "";
}

}  // namespace dcsim::exec
