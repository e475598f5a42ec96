#include "exec/device/driver_memory.h"

#include <ATen/ops/from_blob.h>

#include "exec/device/cuda_call.h"

namespace dcsim::exec {

at::Tensor DriverFloats(std::int64_t count, c10::Device device) {
  void* memory = nullptr;
  DCSIM_CUDA(cudaMalloc(&memory, static_cast<std::size_t>(count) * sizeof(float)));
  return at::for_blob(memory, {count})
      .options(at::TensorOptions().dtype(at::kFloat).device(device))
      .target_device(device)
      .deleter([](void* own) { static_cast<void>(cudaFree(own)); })
      .make_tensor();
}

}  // namespace dcsim::exec
