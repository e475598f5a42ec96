#pragma once

#include <cstdint>

#include "model/machine/cluster.h"

namespace dcsim {

/// A cluster on which times can be worked out by hand: one node of 8 GPUs, to which nothing comes
/// from the host.
///
///   memory      1 TB/s, reached in full, 64 GiB of which 1 GiB lie outside the allocator
///   products    100 TFLOP/s in bfloat16 and float32, reached in full
///   kernels     take at least 1 us
///   collectives ring of 100 GB/s, 10 us latency, nothing a hop
///   host        view 1 us, launch 4 us, collective 8 us, event 1 us, return from a wait 10 us,
///               driver call 100 us
Cluster HandCluster();

/// HandCluster with gaps, and slowdowns drawn by the seed: of collectives beside products, say.
Cluster ContendedCluster(std::uint64_t seed);

/// The same, where kernels wait for multiprocessors by every law that there is.
Cluster CrowdedCluster(std::uint64_t seed);

}  // namespace dcsim
