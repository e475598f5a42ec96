#pragma once

#include <vector>

#include "exec/interpreter/kernel_program.h"

namespace dcsim::exec {

/// A Triton kernel by its stand-in, op by op through PyTorch's dispatcher.
class StandInProgram : public KernelProgram {
 public:
  /// Throws Error where the kernel has no stand-in, and as PreparedCall.
  StandInProgram(const Graph& graph, const TritonKernel& kernel, c10::Device device);

  void Run(const std::vector<Argument>& arguments, const Frame& frame) override;

 private:
  struct Step {
    PreparedCall call;
    const std::vector<ValueId>& outputs;
    std::vector<ValueId> dying;  // tensors that no later step reads
  };

  std::vector<Step> steps_;
  Frame own_;  // the launch's arguments, and what the steps make
  torch::jit::Stack stack_;
};

}  // namespace dcsim::exec
