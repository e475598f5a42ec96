#include "exec/interpreter/kernel_program.h"

#include "exec/interpreter/cubin_program.h"
#include "exec/interpreter/stand_in_program.h"

namespace dcsim::exec {

std::unique_ptr<KernelProgram> MakeKernelProgram(const Graph& graph,
                                                 const TritonKernel& kernel,
                                                 c10::Device device,
                                                 const KernelBinaries* binaries) {
  if (binaries != nullptr) {
    return std::make_unique<CubinProgram>(kernel, *binaries);
  }
  return std::make_unique<StandInProgram>(graph, kernel, device);
}

}  // namespace dcsim::exec
