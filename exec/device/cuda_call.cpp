#include "exec/device/cuda_call.h"

#include "model/base/error.h"

namespace dcsim::exec {

void CheckCuda(cudaError_t code, const char* call) {
  if (code != cudaSuccess) {
    throw SystemError(std::string(call) + ": code " + std::to_string(code) + " (" +
                      cudaGetErrorString(code) + ")");
  }
}

void CheckNccl(ncclResult_t code, const char* call, ncclComm_t communicator) {
  if (code != ncclSuccess && code != ncclInProgress) {
    throw SystemError(std::string(call) + ": code " + std::to_string(code) + " (" +
                      ncclGetErrorString(code) + "): " + ncclGetLastError(communicator));
  }
}

}  // namespace dcsim::exec
