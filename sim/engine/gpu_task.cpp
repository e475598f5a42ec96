#include "sim/engine/gpu_task.h"

#include <algorithm>

#include "model/ir/schedule.h"

namespace dcsim {

GpuTask GpuTask::Of(const WorkCost& cost, std::size_t stream) {
  GpuTask task;
  const bool side = stream != static_cast<std::size_t>(StreamRole::kCompute);
  task.use = side && cost.use == DeviceUse::kStreaming ? DeviceUse::kSideStreaming : cost.use;
  task.beside_collective = cost.beside_collective;
  task.beside_host_copy = cost.beside_host_copy;
  task.to_host = cost.to_host;
  task.demand = cost.demand;
  task.memory_load = cost.memory_load;
  task.beside_memory = cost.beside_memory;
  task.launches = cost.launches;
  task.device = cost.device.ns();
  task.own_shard = cost.own_shard.ns();
  task.start = side ? cost.start.ns() : 0;
  task.room = cost.room.ns();
  task.last_wave = cost.last_wave.ns();
  task.last_free = cost.last_free;
  task.own_tiles = cost.own_tiles.ns();
  task.own_latest = cost.own_latest.ns();
  return task;
}

Rate GpuTask::RateBesideCollective(const Contention& contention) const {
  return beside_collective.value_or(contention.RateOf(use, DeviceUse::kCollective));
}

Rate GpuTask::RateOnMultiprocessors(std::int64_t found, std::int64_t needed) const {
  if (found >= needed) {
    return {};
  }
  const std::int64_t moving = demand.permille() * needed / found;
  return Rate::Of(Share::kWhole, demand.Rest().permille() + moving);
}

Rate GpuTask::RateOfLongerKernels(Rate rate, std::int64_t longer) const {
  const std::int64_t alone = device * Rate::kWorkOfNs;
  const std::int64_t lost = longer * std::max(1, launches) * Rate::kWorkOfNs;
  return Rate::Of(alone, rate.Stretch(alone) + lost);
}

}  // namespace dcsim
