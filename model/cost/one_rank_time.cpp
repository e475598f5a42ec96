#include "model/cost/one_rank_time.h"

#include <algorithm>

#include "model/machine/cluster.h"

namespace dcsim {

std::optional<CollectivePrice> OneRankPrice(const CollectiveTraits& of, const Cluster& cluster) {
  if (of.ranks != 1) {
    return std::nullopt;
  }
  if (of.kind == CollectiveKind::kAllReduce) {
    return CollectivePrice{{Duration(), Source::kEstimated}};
  }
  const Duration copy = CopyTime(cluster.gpu, of.payload);
  return CollectivePrice{{std::max(copy, cluster.gpu.shortest_kernel), Source::kEstimated}};
}

Duration CopyTime(const GpuSpec& gpu, Bytes bytes) {
  const auto rate = static_cast<std::int64_t>(static_cast<double>(gpu.memory_bandwidth.count()) *
                                              gpu.bandwidth_efficiency);
  return TransferTime(bytes * 2, BytesPerSecond(std::max<std::int64_t>(1, rate)));
}

}  // namespace dcsim
