#pragma once

#include <cstddef>
#include <cstdint>

#include "model/ir/plan.h"

namespace dcsim {

/// What one update of a rank's partition does on the device.
struct OptimizerUpdate {
  std::int64_t accesses = 0;  // tensors of the partition's size that are read, plus those written
  std::size_t launches = 0;
  std::size_t temporaries = 0;  // of the partition's size, held meanwhile
};

/// What an optimizer keeps beside master weights.
struct OptimizerSpec {
  std::size_t moments = 0;   // of the partition's size: the first so many of OptimizerTensor
  bool counts_steps = true;  // one number beside them on the GPU
  bool has_passes = true;    // torch has it in elementwise passes (foreach, for_loop)
};

OptimizerSpec OptimizerSpecOf(OptimizerAlgorithm algorithm);

/// Whether the optimizer keeps this tensor.
bool Keeps(OptimizerAlgorithm algorithm, OptimizerTensor tensor);

/// Of a tensor that the optimizer keeps.
DType DTypeOf(const TrainingOptions& training, OptimizerTensor tensor);

/// In which a rank's partition of the gradients of parameters of dtype `own` is kept.
inline DType AccumulationDType(const TrainingOptions& training, DType own) {
  return training.accumulation.value_or(own);
}
inline std::int64_t AccumulationBytes(const TrainingOptions& training, DType own) {
  return ElementBytes(AccumulationDType(training, own));
}

/// Bytes of master weights and moments for each element of a partition.
std::int64_t StateBytesPerElement(const TrainingOptions& training);

/// Whether DeepSpeed's own multi-tensor kernel updates the partition. Lion has no other.
bool RunsDeepSpeedKernel(const ScheduleOptions& options);

/// The update of a partition of `elements`, steady state. Sources: PyTorch 2.11 (torch/optim/,
/// aten/src/ATen/native/cuda/fused_adam_utils.cuh, FusedSgdKernel.cu); DeepSpeed 0.19.8
/// (csrc/adam/multi_tensor_adam.cu, csrc/lion/multi_tensor_lion.cu). No weight decay is counted
/// but AdamW's.
OptimizerUpdate UpdateOf(const ScheduleOptions& options, std::int64_t elements);

}  // namespace dcsim
