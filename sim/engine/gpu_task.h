#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "model/cost/work_cost.h"

namespace dcsim {

/// The part of a task's cost that decides how it shares the GPU. Times in ns.
struct GpuTask {
  DeviceUse use = DeviceUse::kStreaming;
  bool to_host = false;                   // of WorkCost
  std::optional<Rate> beside_collective;  // of WorkCost
  std::optional<Rate> beside_host_copy;   // of WorkCost
  Share demand = Share::All();            // of WorkCost
  Share memory_load;                      // of WorkCost
  Longer beside_memory;                   // of WorkCost
  std::int32_t launches = 0;              // of WorkCost
  std::int64_t device = 0;
  std::int64_t own_shard = 0;   // of WorkCost
  std::int64_t start = 0;       // of WorkCost
  std::int64_t room = 0;        // of WorkCost
  std::int64_t last_wave = 0;   // of WorkCost
  std::int32_t last_free = 0;   // of WorkCost
  std::int64_t own_tiles = 0;   // of WorkCost
  std::int64_t own_latest = 0;  // of WorkCost

  /// As a task of the stream.
  static GpuTask Of(const WorkCost& cost, std::size_t stream);

  /// Its speed beside a collective of all of NCCL's thread blocks.
  Rate RateBesideCollective(const Contention& contention) const;

  /// What one of its kernels takes in the mean, 1 ns at least.
  std::int64_t KernelTime() const {
    return std::max<std::int64_t>(1, device / std::max(1, launches));
  }

  /// How long a thread block of many lasts, which the end of attention leaves others; 0: not known.
  std::int64_t LastRound() const { return room < device ? room : 0; }

  /// A copy's speed on so many multiprocessors of those that it needs while it moves bytes, which
  /// is what it demands of its time; `found` > 0.
  Rate RateOnMultiprocessors(std::int64_t found, std::int64_t needed) const;

  /// Its speed where each of its kernels takes `longer` ns more than at `rate`.
  Rate RateOfLongerKernels(Rate rate, std::int64_t longer) const;
};

}  // namespace dcsim
