#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "model/ir/graph.h"

namespace dcsim::exec {

/// The tensors of a micro-step, by ValueId; undefined where nothing lives now.
using Frame = std::vector<at::Tensor>;

/// A recorded graph ready to run op by op through PyTorch's dispatcher: operators looked up,
/// arguments decoded by their schemas, everything but the tensors in place. Allocates nothing of
/// its own per op.
class OpProgram {
 public:
  /// Throws Error when an operator is unknown to this libtorch, or when its schema is not the
  /// recorded one (another torch version), naming op and both schemas.
  OpProgram(const Graph& graph, c10::Device device);

  /// Calls one op on the tensors of the frame and puts its outputs there. Every input must be
  /// defined. Throws SystemError with the op's name before PyTorch's message; c10::OutOfMemoryError
  /// passes through.
  void Run(OpId id, Frame& frame);

  c10::Device device() const { return device_; }

 private:
  /// Where a tensor goes: argument, and place in it when that is a list.
  struct TensorSlot {
    std::uint32_t argument = 0;
    std::int32_t element = kWhole;
    ValueId value;

    static constexpr std::int32_t kWhole = -1;
  };
  struct PreparedOp {
    c10::OperatorHandle handle;
    std::vector<c10::IValue> prototype;
    std::vector<TensorSlot> slots;
    std::vector<std::uint32_t> lists;  // arguments that are lists of tensors
  };

  PreparedOp Prepare(const Graph& graph, OpId id) const;
  void Fill(const PreparedOp& op, const Frame& frame);
  void Take(const Op& op, Frame& frame);

  const Graph& graph_;
  c10::Device device_;
  std::vector<PreparedOp> ops_;
  torch::jit::Stack stack_;  // reused by every call
};

}  // namespace dcsim::exec
