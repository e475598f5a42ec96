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

std::int32_t GpuTask::RateBesideCollective(const Contention& contention) const {
  return beside_collective != 0 ? beside_collective : contention.Rate(use, DeviceUse::kCollective);
}

std::int32_t GpuTask::RateOnMultiprocessors(std::int64_t found, std::int64_t needed) const {
  constexpr std::int64_t kAlone = Contention::kAlone;
  if (found >= needed) {
    return kAlone;
  }
  const std::int64_t time = kAlone - demand + demand * needed / found;
  return static_cast<std::int32_t>(kAlone * kAlone / time);
}

std::int32_t GpuTask::RateOfLongerKernels(std::int32_t rate, std::int64_t longer) const {
  const std::int64_t alone = device * Contention::kAlone;
  const std::int64_t lost = longer * std::max(1, launches) * Contention::kAlone;
  const std::int64_t time = alone * Contention::kAlone / rate + lost;
  return static_cast<std::int32_t>(std::max<std::int64_t>(1, alone * Contention::kAlone / time));
}

}  // namespace dcsim
