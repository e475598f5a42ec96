#pragma once

#include <memory>
#include <vector>

#include "exec/interpreter/compiled_memory.h"
#include "exec/interpreter/kernel_program.h"
#include "exec/interpreter/prepared_call.h"
#include "model/ir/graph.h"

namespace dcsim::exec {

/// A recorded graph ready to run op by op: operators looked up in PyTorch's dispatcher, arguments
/// decoded by their schemas, everything but the tensors in place. Allocates nothing of its own per
/// op, but for compiled graphs.
class OpProgram {
 public:
  /// Throws Error when an operator is unknown to this libtorch, or when its schema is not the
  /// recorded one (another torch version), naming op and both schemas; when a kernel of a compiled
  /// graph has no stand-in, by which it is run without `binaries` (MakeKernelProgram).
  ///
  ///   binaries   of a compiled graph on a GPU: its kernels, of which each is launched with the
  ///              fastest of its configurations (UseFastestConfigurations)
  OpProgram(const Graph& graph, c10::Device device, const KernelBinaries* binaries = nullptr);

  /// Calls one op on the tensors of the frame and puts its outputs there. Every input must be
  /// defined. Throws SystemError with the op's name before PyTorch's message; c10::OutOfMemoryError
  /// passes through.
  void Run(OpId id, Frame& frame);

  c10::Device device() const { return device_; }

 private:
  void Launch(const Op& op, Frame& frame);
  void Call(OpId id, Frame& frame);
  void CallInto(OpId id, Frame& frame);
  bool HasMemory(OpId id, const Frame& frame) const;
  void MoveView(const Op& op, const Frame& frame);
  void Take(const Op& op, Frame& frame);
  void Keep(ValueId output, at::Tensor&& result, Frame& frame) const;

  const Graph& graph_;
  c10::Device device_;
  std::vector<std::unique_ptr<PreparedCall>> calls_;  // by op; null for a launch
  // By op of a compiled graph: the call that writes into memory, null where there is none.
  std::vector<std::unique_ptr<PreparedCall>> writing_calls_;
  std::vector<std::unique_ptr<KernelProgram>> kernels_;
  std::unique_ptr<CompiledMemory> memory_;  // of a compiled graph
  std::vector<char> shows_storage_;         // by schema: as_strided, whose offset is the storage's
  torch::jit::Stack stack_;                 // reused by every call
};

}  // namespace dcsim::exec
