#pragma once

#include <deque>
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
  /// not take its cubins.
  CubinProgram(const TritonKernel& kernel, const KernelBinaries& binaries);

  std::size_t configurations() const override { return programs_.size(); }
  void Use(std::size_t configuration) override { used_ = configuration; }

  /// What the kernel only reads is copied where it lies at no multiple of 16 bytes and the kernel
  /// was compiled for one, as PyTorch does with a graph's inputs. Throws SystemError where it
  /// writes there.
  void Run(const std::vector<Argument>& arguments, const Frame& frame) override;

 private:
  struct Program {
    Program(const TritonKernel& kernel, const KernelBinaries& binaries, const KernelBinary& own);

    const KernelBinary& binary;
    GpuKernel function;
    LaunchArguments packed;
    std::vector<char> must_align;  // by position in the signature
  };

  at::Tensor Align(std::size_t position, const at::Tensor& tensor) const;

  const TritonKernel& kernel_;
  std::deque<Program> programs_;  // by configuration
  std::size_t used_ = 0;
};

}  // namespace dcsim::exec
