#pragma once

#include "model/cost/cluster.h"
#include "model/cost/estimate.h"

namespace dcsim {

/// The cluster's table that answers for a collective, or null.
const CollectiveTable* FindCollectiveTable(const Cluster& cluster,
                                           CollectiveKind kind,
                                           Engine engine,
                                           int ranks);

/// Time of a collective alone, from the last rank's start to its end, launch to last byte.
///
///   payload   of the full tensor (nccl-tests' size), summed over the calls of a group: one NCCL
///             group runs as one kernel, so its calls share one latency
///   ranks     >= 1; one rank costs a copy on its own GPU
///
/// A measured table of the same kind, engine and ranks answers where there is one: its point
/// (measured), the straight line between two points (interpolated), below the table the line from
/// RingTime's latency at 0 bytes to the smallest point, and above it the slope of the last two
/// points (both estimated). Otherwise RingTime.
Estimate CollectiveTime(
    const Cluster& cluster, CollectiveKind kind, Engine engine, Bytes payload, int ranks);

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
