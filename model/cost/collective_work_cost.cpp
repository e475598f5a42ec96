#include "model/cost/collective_work_cost.h"

#include "model/base/scaled.h"
#include "model/cost/collective_cost.h"
#include "model/cost/collective_models.h"

namespace dcsim {
namespace {

/// The tensors of its calls, and where they and their shards begin.
std::vector<CollectivePart> CallsOf(const std::vector<bool>& shifted_shards,
                                    const Collective& collective) {
  std::vector<CollectivePart> calls;
  const std::int64_t element = ElementBytes(collective.dtype);
  const bool gathers = collective.kind == CollectiveKind::kAllGather;
  for (const CollectiveCall& call : collective.calls) {
    const std::size_t param = call.param.index();
    const bool shifted = gathers && param < shifted_shards.size() && shifted_shards[param];
    calls.push_back({Bytes(call.elements * element), Bytes(call.offset * element), shifted});
  }
  return calls;
}

/// A gather by copy engines: its calls' copies run one after the other, one copy a rank.
WorkCost CopyEngineCost(const Cluster& cluster,
                        const std::vector<bool>& shifted_shards,
                        const Collective& collective) {
  const std::vector<CollectivePart> parts = CallsOf(shifted_shards, collective);
  const CollectivePrice gather = PriceOf({.kind = collective.kind,
                                          .payload = collective.payload(),
                                          .ranks = collective.ranks,
                                          .engine = collective.engine,
                                          .parts = parts},
                                         cluster);
  const double copies = static_cast<double>(collective.launches()) * collective.ranks;
  return {.device = gather.whole.time,
          .host = Scaled(cluster.host.copy, copies),
          .source = gather.whole.source,
          .use = CollectiveUse(collective.engine, collective.ranks),
          .of_link = gather.whole.of_link,
          .distance = gather.whole.distance,
          .beside_memory = cluster.gpu.contention.GatherLongerBesideMemory(collective.ranks),
          .launches = static_cast<std::int32_t>(collective.launches()),
          .own_shard = gather.own_shards};
}

/// What NCCL gets of it: the calls of a group, or all of a bucket as one.
std::vector<CollectivePart> LaunchedCalls(const std::vector<bool>& shifted_shards,
                                          const Collective& collective) {
  if (collective.one_launch) {
    return {{collective.payload(), Bytes(0)}};
  }
  return CallsOf(shifted_shards, collective);
}

/// One rank's gather in place has nothing to copy, and so does a bucket that is reduced
/// as one, which ranks sum into their parts of it: NCCL launches nothing.
bool HasNothingToMove(const Collective& collective) {
  if (collective.ranks > 1) {
    return false;
  }
  if (collective.kind == CollectiveKind::kReduceScatter) {
    return collective.one_launch;
  }
  return collective.kind == CollectiveKind::kAllGather && collective.in_place;
}

}  // namespace

WorkCost CollectiveWorkCost(const Cluster& cluster,
                            const std::vector<bool>& shifted_shards,
                            const Collective& collective) {
  if (collective.engine == Engine::kCopyEngine) {
    return CopyEngineCost(cluster, shifted_shards, collective);
  }
  const std::vector<CollectivePart> parts = LaunchedCalls(shifted_shards, collective);
  const Estimate estimate = HasNothingToMove(collective)
                                ? Estimate{Duration(), Source::kEstimated}
                                : GroupTime(cluster, collective.kind, parts, collective.ranks);
  const auto launches = static_cast<std::int64_t>(collective.launches());
  const HostCosts& host = cluster.host;
  return {.device = estimate.time,
          .host = host.collective + host.grouped * (launches - 1),
          .further = collective.ranks == 1 ? host.grouped * (launches - 1) : Duration(),
          .source = estimate.source,
          .use = CollectiveUse(collective.engine, collective.ranks),
          .of_link = estimate.of_link,
          .distance = estimate.distance,
          .demand = GroupDemand(cluster, collective.kind, parts, collective.ranks),
          .beside_memory =
              cluster.gpu.contention.LongerBesideMemory(collective.payload(), collective.ranks),
          .launches = collective.ranks == 1 ? static_cast<std::int32_t>(launches) : 1,
          .start = CollectiveStart(cluster, collective.ranks)};
}

}  // namespace dcsim
