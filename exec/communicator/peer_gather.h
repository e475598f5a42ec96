#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace dcsim::exec {

/// An all-gather by copies, on the current stream: elements [offset, offset + shard) of every
/// rank's flat tensor (Communicator::OpenPeers) go to `whole` [peers * shard], by rank. Rank `rank`
/// begins with its successor's, so that not all ranks read from the same one. Waits for nobody:
/// what peers write has to be ordered by the caller.
void GatherFromPeers(const std::vector<at::Tensor>& peers,
                     int rank,
                     std::int64_t offset,
                     std::int64_t shard,
                     const at::Tensor& whole);

}  // namespace dcsim::exec
