#include "exec/communicator/peer_gather.h"

#include <cstring>

#include <c10/cuda/CUDAStream.h>

#include "exec/device/cuda_call.h"

namespace dcsim::exec {
namespace {

struct Copies {
  std::vector<void*> to;
  std::vector<const void*> from;
  std::vector<std::size_t> bytes;
};

/// Rank `rank` begins with its successor's shard, so that not all ranks read from the same one.
void Add(const PeerGather& gather, int rank, Copies& copies) {
  const auto bytes = static_cast<std::size_t>(gather.shard * gather.whole.element_size());
  const auto skipped = static_cast<std::size_t>(gather.offset * gather.whole.element_size());
  auto* to = static_cast<char*>(gather.whole.mutable_data_ptr());
  const std::size_t ranks = gather.peers.size();
  for (std::size_t i = 1; i <= ranks && bytes > 0; ++i) {
    const std::size_t from = (static_cast<std::size_t>(rank) + i) % ranks;
    copies.to.push_back(to + from * bytes);
    copies.from.push_back(static_cast<const char*>(gather.peers[from].const_data_ptr()) + skipped);
    copies.bytes.push_back(bytes);
  }
}

void CopyOnGpu(const Copies& copies) {
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  attributes.flags = cudaMemcpyFlagPreferOverlapWithCompute;
  std::size_t first = 0;
  DCSIM_CUDA(cudaMemcpyBatchAsync(copies.to.data(), copies.from.data(), copies.bytes.data(),
                                  copies.to.size(), &attributes, &first, 1,
                                  c10::cuda::getCurrentCUDAStream()));
}

}  // namespace

void GatherFromPeers(std::span<const PeerGather> gathers, int rank) {
  Copies copies;
  for (const PeerGather& gather : gathers) {
    Add(gather, rank, copies);
  }
  if (copies.to.empty()) {
    return;
  }
  if (gathers.front().whole.is_cuda()) {
    return CopyOnGpu(copies);
  }
  for (std::size_t i = 0; i < copies.to.size(); ++i) {
    std::memcpy(copies.to[i], copies.from[i], copies.bytes[i]);
  }
}

}  // namespace dcsim::exec
