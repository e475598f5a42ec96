#pragma once

#include <memory>
#include <vector>

#include "exec/interpreter/kernel_binaries.h"
#include "exec/interpreter/prepared_call.h"
#include "model/ir/graph.h"

namespace dcsim::exec {

/// A Triton kernel of a compiled graph, ready to be launched.
class KernelProgram {
 public:
  KernelProgram() = default;
  KernelProgram(const KernelProgram&) = delete;
  KernelProgram& operator=(const KernelProgram&) = delete;
  virtual ~KernelProgram() = default;

  /// How many configurations it can be launched with: at least one.
  virtual std::size_t configurations() const { return 1; }
  /// Launches with this configuration from now on; the first before.
  virtual void Use(std::size_t /*configuration*/) {}

  /// One launch. Every tensor among the arguments is in the frame.
  virtual void Run(const std::vector<Argument>& arguments, const Frame& frame) = 0;
};

/// The kernel itself where there are binaries, which are for the current GPU and have no fault
/// (FindUnlaunchable); else its stand-in. Throws Error where the kernel has none, and as
/// PreparedCall; SystemError where the GPU does not take the kernel.
std::unique_ptr<KernelProgram> MakeKernelProgram(const Graph& graph,
                                                 const TritonKernel& kernel,
                                                 c10::Device device,
                                                 const KernelBinaries* binaries);

}  // namespace dcsim::exec
