#pragma once

#include <optional>

#include "model/cost/collective_traits.h"

namespace dcsim {

/// Of any collective, by its link's figures alone (`of_link`).
std::optional<CollectivePrice> RingPrice(const CollectiveTraits& of, const Cluster& cluster);

/// The latency-bandwidth fallback, rounded up to whole ns:
///
///   latency + steps * hop_latency + wire / bus_bandwidth,
///
/// with steps = n - 1 and wire = (n-1)/n * payload for all-gather and reduce-scatter, and twice
/// both for all-reduce. One node's ring uses `intra_node`; a ring over several nodes the slower of
/// both links' bandwidths and `inter_node`'s latencies. Source: NCCL src/graph/tuning.cc (ring),
/// nccl-tests doc/PERFORMANCE.md (bus bandwidth).
Duration RingTime(const Cluster& cluster, CollectiveKind kind, Bytes payload, int ranks);

}  // namespace dcsim
