#include "model/cost/copy_gather_time.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "model/base/error.h"
#include "model/cost/one_rank_time.h"
#include "model/machine/cluster.h"

namespace dcsim {
namespace {

CopyEngines EnginesOf(const Cluster& cluster) {
  const Link& link = cluster.intra_node;
  return cluster.copy_engines.value_or(
      CopyEngines{link.latency, Duration(), link.bus_bandwidth, 0});
}

Source SourceOf(const Cluster& cluster, int ranks) {
  const bool measured = cluster.copy_engines && ranks == cluster.gpus_per_node;
  return measured ? Source::kMeasured : Source::kEstimated;
}

}  // namespace

double CrowdedCopies(const CopyEngines& engines, int ranks) {
  return ranks <= 2 ? 1 : 1 + engines.crowding * (ranks - 2) / (ranks - 1);
}

CollectivePrice CopyGatherTime(const Cluster& cluster,
                               std::span<const CollectivePart> tensors,
                               int ranks) {
  CollectivePrice gather;
  if (ranks == 1) {
    for (const CollectivePart& tensor : tensors) {
      gather.own_shards +=
          OneRankPrice({CollectiveKind::kAllGather, tensor.payload, ranks}, cluster)->whole.time;
    }
    gather.whole = {gather.own_shards, Source::kEstimated};
    return gather;
  }
  if (cluster.NodesOf(ranks) > 1) {
    throw Error("gather_engine: copy_engine: " + std::to_string(ranks) + " ranks lie on " +
                std::to_string(cluster.NodesOf(ranks)) +
                " nodes, and copy engines reach the GPUs of one node alone (gpus_per_node: " +
                std::to_string(cluster.gpus_per_node) + "); use gather_engine: nccl");
  }
  const CopyEngines engines = EnginesOf(cluster);
  const double crowded = CrowdedCopies(engines, ranks);
  Duration from_others;
  for (const CollectivePart& tensor : tensors) {
    const Bytes shard(tensor.payload.count() / ranks);
    const auto peers = static_cast<double>(TransferTime(shard * (ranks - 1), engines.rate).ns());
    const Duration copies = engines.copy * (ranks - 1) + RoundedUpNs(peers * crowded);
    from_others = std::min(kLongest, from_others + copies);
    gather.own_shards += engines.copy + CopyTime(cluster.gpu, shard);
  }
  gather.whole = {engines.start + from_others + gather.own_shards, SourceOf(cluster, ranks)};
  gather.whole.of_link = !cluster.copy_engines;
  gather.whole.distance.ranks = std::log2(static_cast<double>(cluster.gpus_per_node) / ranks);
  return gather;
}

std::optional<CollectivePrice> CopyGatherPrice(const CollectiveTraits& of, const Cluster& cluster) {
  return of.engine == Engine::kCopyEngine
             ? std::optional(CopyGatherTime(cluster, of.parts, of.ranks))
             : std::nullopt;
}

}  // namespace dcsim
