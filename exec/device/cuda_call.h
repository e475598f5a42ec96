#pragma once

#include <string>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace dcsim::exec {

/// Throws SystemError "`call`: code 2 (out of memory)" unless the call succeeded.
void CheckCuda(cudaError_t code, const char* call);
/// The same for NCCL, with NCCL's own account of the last failure.
void CheckNccl(ncclResult_t code, const char* call, ncclComm_t communicator);

}  // namespace dcsim::exec

#define DCSIM_CUDA(call) ::dcsim::exec::CheckCuda((call), #call)
