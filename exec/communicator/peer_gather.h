#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace dcsim::exec {

/// Elements [offset, offset + shard) of every rank's flat tensor (Communicator::OpenPeers) for
/// `whole` [peers * shard], by rank.
struct PeerGather {
  const std::vector<at::Tensor>& peers;
  std::int64_t offset = 0;
  std::int64_t shard = 0;  // elements
  at::Tensor whole;
};

/// All-gathers by copies, on the current stream, which is not the default one. All copies are given
/// to the driver together: it spreads them over copy engines, the own shard's too, which a plain
/// copy within one GPU would take multiprocessors for. Waits for nobody: what peers write has to be
/// ordered by the caller.
void GatherFromPeers(std::span<const PeerGather> gathers, int rank);

}  // namespace dcsim::exec
