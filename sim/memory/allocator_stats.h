#pragma once

#include <algorithm>
#include <cstdint>

#include "model/base/units.h"

namespace dcsim {

/// A quantity that goes up and down, with its maximum since the last ResetPeaks.
template <typename Quantity>
struct TrackedStat {
  Quantity current{};
  Quantity peak{};

  void Add(Quantity amount) {
    current = current + amount;
    peak = std::max(peak, current);
  }
  void Subtract(Quantity amount) { current = current - amount; }
  void ResetPeak() { peak = current; }
};

/// What `torch.cuda.memory_stats` reports, under the same names ("…_bytes.all").
struct AllocatorStats {
  TrackedStat<Bytes> allocated;        ///< blocks handed out, whole blocks
  TrackedStat<Bytes> active;           ///< allocated, and freed blocks that wait for events
  TrackedStat<Bytes> reserved;         ///< what the driver handed out
  TrackedStat<Bytes> requested;        ///< as asked for, before rounding, of the active blocks
  TrackedStat<Bytes> inactive_split;   ///< free parts of segments; always 0 if expandable
  TrackedStat<std::int64_t> segments;  ///< cudaMalloc'd segments alive; always 0 if expandable
  std::int64_t retries = 0;            ///< num_alloc_retries: flushes of the cache to make room
  std::int64_t ooms = 0;               ///< requests refused

  void ResetPeaks() {
    allocated.ResetPeak();
    active.ResetPeak();
    reserved.ResetPeak();
    requested.ResetPeak();
    inactive_split.ResetPeak();
    segments.ResetPeak();
  }
};

}  // namespace dcsim
