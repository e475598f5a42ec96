#include "exec/communicator/peer_gather.h"

#include <cstring>

#include <c10/cuda/CUDAStream.h>

#include "exec/device/cuda_call.h"

namespace dcsim::exec {
namespace {

void Copy(void* to, const void* from, std::size_t bytes, bool on_gpu) {
  if (on_gpu) {
    DCSIM_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                               c10::cuda::getCurrentCUDAStream()));
  } else {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace

void GatherFromPeers(const std::vector<at::Tensor>& peers,
                     int rank,
                     std::int64_t offset,
                     std::int64_t shard,
                     const at::Tensor& whole) {
  const std::int64_t element = whole.element_size();
  auto* to = static_cast<char*>(whole.mutable_data_ptr());
  const auto ranks = static_cast<int>(peers.size());
  for (int i = 1; i <= ranks; ++i) {
    const int from = (rank + i) % ranks;
    const auto* data =
        static_cast<const char*>(peers[static_cast<std::size_t>(from)].const_data_ptr());
    Copy(to + from * shard * element, data + offset * element,
         static_cast<std::size_t>(shard * element), whole.is_cuda());
  }
}

}  // namespace dcsim::exec
