#include "model/cost/ring_time.h"

#include <algorithm>
#include <cmath>

#include "model/machine/cluster.h"

namespace dcsim {

std::optional<CollectivePrice> RingPrice(const CollectiveTraits& of, const Cluster& cluster) {
  return CollectivePrice{{RingTime(cluster, of.kind, of.payload, of.ranks),
                          Source::kEstimated,
                          {},
                          /*of_link=*/true}};
}

Duration RingTime(const Cluster& cluster, CollectiveKind kind, Bytes payload, int ranks) {
  const bool spans_nodes = cluster.NodesOf(ranks) > 1 && cluster.inter_node.has_value();
  const Link& link = spans_nodes ? *cluster.inter_node : cluster.intra_node;
  const BytesPerSecond bandwidth =
      spans_nodes ? std::min(link.bus_bandwidth, cluster.intra_node.bus_bandwidth)
                  : link.bus_bandwidth;
  const std::int64_t passes = kind == CollectiveKind::kAllReduce ? 2 : 1;
  const std::int64_t steps = passes * (ranks - 1);
  const double wire = static_cast<double>(payload.count()) * static_cast<double>(steps) / ranks;
  const Bytes sent(static_cast<std::int64_t>(std::ceil(wire)));
  return link.latency + link.hop_latency * steps + TransferTime(sent, bandwidth);
}

}  // namespace dcsim
