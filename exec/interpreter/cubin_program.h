#pragma once

#include <map>
#include <string>
#include <vector>

#include "exec/device/gpu_kernel.h"
#include "exec/interpreter/kernel_program.h"
#include "exec/interpreter/launch_arguments.h"

namespace dcsim::exec {

/// A Triton kernel as it was compiled for the current GPU.
class CubinProgram : public KernelProgram {
 public:
  /// Both are referred to; the kernel is among the binaries. Throws SystemError where the GPU does
  /// not take its cubin.
  CubinProgram(const TritonKernel& kernel, const KernelBinaries& binaries);

  /// What the kernel only reads is copied where it lies at no multiple of 16 bytes and the kernel
  /// was compiled for one, as PyTorch does with a graph's inputs. Throws SystemError where it
  /// writes there.
  void Run(const std::vector<Argument>& arguments, const Frame& frame) override;

 private:
  at::Tensor Align(std::size_t position, const at::Tensor& tensor) const;

  const TritonKernel& kernel_;
  const KernelBinary& binary_;
  GpuKernel function_;
  LaunchArguments packed_;
  std::vector<char> must_align_;  // by position in the signature
};

}  // namespace dcsim::exec
