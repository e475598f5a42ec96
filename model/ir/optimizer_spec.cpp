#include "model/ir/optimizer_spec.h"

#include <array>

#include "model/base/units.h"

namespace dcsim {
namespace {

struct Row {
  OptimizerSpec spec;
  std::int64_t fused_accesses = 0;
  OptimizerUpdate passes;  // multi-tensor; tensor by tensor a quotient is one temporary more
};

/// By OptimizerAlgorithm. Fused: gradient, master weights and moments read, all but the gradient
/// written. AdamW's passes: weight decay 2 accesses, exp_avg lerp 3, exp_avg_sq mul 2 and addcmul
/// 3, sqrt 2, division 2, eps 2, addcdiv 4; Adam's the same without the first. SGD's momentum: mul
/// 2, add 3; the step: add 3.
constexpr std::array<Row, 5> kRows = {{
    {{2, true, true}, 7, {20, 8, 1}},
    {{2, true, true}, 7, {18, 7, 1}},
    {{0, false, true}, 3, {3, 1, 0}},
    {{1, false, true}, 5, {8, 3, 0}},
    {{1, true, false}, 5, {}},
}};

const Row& RowOf(OptimizerAlgorithm algorithm) {
  return kRows[static_cast<std::size_t>(algorithm)];
}

/// DeepSpeed's multi_tensor_apply: a thread block takes a chunk, a launch so many blocks.
std::size_t ChunkedLaunches(std::int64_t elements) {
  constexpr std::int64_t kChunk = 2048 * 32;
  constexpr std::int64_t kBlocks = 320;
  return static_cast<std::size_t>(DivideUp(DivideUp(elements, kChunk), kBlocks));
}

}  // namespace

OptimizerSpec OptimizerSpecOf(OptimizerAlgorithm algorithm) {
  return RowOf(algorithm).spec;
}

bool Keeps(OptimizerAlgorithm algorithm, OptimizerTensor tensor) {
  return tensor == OptimizerTensor::kMaster ||
         static_cast<std::size_t>(tensor) < OptimizerSpecOf(algorithm).moments;
}

DType DTypeOf(const TrainingOptions& training, OptimizerTensor tensor) {
  return tensor == OptimizerTensor::kMaster ? training.master : training.states;
}

std::int64_t StateBytesPerElement(const TrainingOptions& training) {
  const auto moments = static_cast<std::int64_t>(OptimizerSpecOf(training.algorithm).moments);
  return ElementBytes(training.master) + moments * ElementBytes(training.states);
}

bool RunsDeepSpeedKernel(const ScheduleOptions& options) {
  return options.optimizer == OptimizerKernels::kDeepSpeedFused ||
         options.training.algorithm == OptimizerAlgorithm::kLion;
}

OptimizerUpdate UpdateOf(const ScheduleOptions& options, std::int64_t elements) {
  const Row& row = RowOf(options.training.algorithm);
  if (RunsDeepSpeedKernel(options)) {
    return {row.fused_accesses, ChunkedLaunches(elements), 0};
  }
  OptimizerUpdate update = row.passes;
  switch (options.optimizer) {
    case OptimizerKernels::kForeach:
      return update;
    case OptimizerKernels::kForLoop:
      update.temporaries *= 2;
      return update;
    default:
      return {row.fused_accesses, 1, 0};
  }
}

}  // namespace dcsim
