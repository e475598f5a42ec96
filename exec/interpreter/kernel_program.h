#pragma once

#include <string>
#include <vector>

#include "exec/interpreter/prepared_call.h"
#include "model/ir/graph.h"

namespace dcsim::exec {

/// A Triton kernel of a compiled graph, ready to be launched: its stand-in, op by op through
/// PyTorch's dispatcher. Whoever launches the kernel itself on a GPU does it here.
class KernelProgram {
 public:
  /// Throws Error where the kernel has no stand-in, and as PreparedCall.
  KernelProgram(const Graph& graph, const TritonKernel& kernel, c10::Device device);

  /// One launch. Every tensor among the arguments is in the frame.
  void Run(const std::vector<Argument>& arguments, const Frame& frame);

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
