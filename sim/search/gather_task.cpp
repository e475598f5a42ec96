#include "sim/search/gather_task.h"

#include "model/cost/collective_models.h"

namespace dcsim {

GpuTask GatherTask(const Cluster& cluster,
                   Engine engine,
                   std::span<const CollectivePart> parts,
                   int ranks) {
  constexpr CollectiveKind kGather = CollectiveKind::kAllGather;
  GpuTask task;
  task.use = CollectiveUse(engine, ranks);
  if (engine == Engine::kNccl) {
    task.device = GroupTime(cluster, kGather, parts, ranks).time.ns();
    task.demand = GroupDemand(cluster, kGather, parts, ranks);
    task.beside_memory = cluster.gpu.contention.LongerBesideMemory(PayloadOf(parts), ranks);
    task.launches = ranks == 1 ? static_cast<std::int32_t>(parts.size()) : 1;
    task.start = CollectiveStart(cluster, ranks).ns();
  } else {
    const CollectivePrice gather = PriceOf({.kind = kGather,
                                            .payload = PayloadOf(parts),
                                            .ranks = ranks,
                                            .engine = engine,
                                            .parts = parts},
                                           cluster);
    task.device = gather.whole.time.ns();
    task.own_shard = gather.own_shards.ns();
    task.beside_memory = cluster.gpu.contention.GatherLongerBesideMemory(ranks);
  }
  return task;
}

}  // namespace dcsim
