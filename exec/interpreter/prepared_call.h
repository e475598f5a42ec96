#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "model/ir/graph.h"

namespace dcsim::exec {

/// The tensors of a micro-step, by ValueId; undefined where nothing lives now.
using Frame = std::vector<at::Tensor>;

/// A call of an operator with everything but its tensors in place.
class PreparedCall {
 public:
  /// Throws Error when the operator is unknown to this libtorch, or when its schema is not the
  /// recorded one (another torch version), naming op and both schemas.
  PreparedCall(const std::string& schema,
               const std::vector<Argument>& arguments,
               c10::Device device);

  /// The same operator, where it has an overload that writes its one result into a tensor that it
  /// is given behind the arguments.
  static std::optional<PreparedCall> IntoMemory(const std::string& schema,
                                                const std::vector<Argument>& arguments,
                                                c10::Device device);

  /// Puts the arguments onto the stack, with the frame's tensors in their places. Every tensor must
  /// be defined.
  void Fill(const Frame& frame, torch::jit::Stack& stack) const;
  /// Calls the operator; its results take the place of the arguments.
  void Call(torch::jit::Stack& stack) const { handle_.callBoxed(&stack); }

 private:
  /// Where a tensor goes: argument, and place in it when that is a list.
  struct TensorSlot {
    std::uint32_t argument = 0;
    std::int32_t element = kWhole;
    ValueId value;

    static constexpr std::int32_t kWhole = -1;
  };

  PreparedCall(c10::OperatorHandle handle,
               const std::vector<Argument>& arguments,
               c10::Device device);

  c10::OperatorHandle handle_;
  std::vector<c10::IValue> prototype_;
  std::vector<TensorSlot> slots_;
  std::vector<std::uint32_t> lists_;  // arguments that are lists of tensors
};

}  // namespace dcsim::exec
