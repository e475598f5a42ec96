#include "sim/search/gather_task.h"

namespace dcsim {

GpuTask GatherTask(const Cluster& cluster,
                   Engine engine,
                   std::span<const CollectivePart> parts,
                   int ranks) {
  constexpr CollectiveKind kGather = CollectiveKind::kAllGather;
  GpuTask task;
  task.use = CollectiveUse(engine, ranks);
  task.device = GroupTime(cluster, kGather, engine, parts, ranks).time.ns();
  if (engine == Engine::kNccl) {
    task.demand = GroupDemand(cluster, kGather, parts);
    task.start = CollectiveStart(cluster, ranks).ns();
  } else {
    const Duration whole = Duration::FromNs(task.device);
    task.own_shard = OwnShardTime(cluster, parts.front().payload, ranks, whole).ns();
  }
  return task;
}

}  // namespace dcsim
