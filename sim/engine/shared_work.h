#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "model/cost/contention.h"

namespace dcsim {

/// The rest of a running task whose speed changes with what runs beside it (docs/costs.md,
/// Contention). Times in ns.
struct SharedWork {
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  std::int64_t left = 0;  // at `updated`, ns x Contention::kAlone
  std::int64_t updated = 0;
  std::int32_t rate = 0;  // per mille of its speed alone

  /// Starts work that takes `duration` alone; returns its end if nothing changes.
  std::int64_t Begin(std::int64_t now, std::int64_t duration) {
    left = duration * Contention::kAlone;
    updated = now;
    rate = Contention::kAlone;
    return now + duration;
  }

  /// Goes on at another speed; returns the end if nothing changes again, kNever at rate 0.
  std::int64_t ChangeRate(std::int64_t now, std::int32_t new_rate) {
    left = std::max<std::int64_t>(0, left - (now - updated) * rate);
    updated = now;
    rate = new_rate;
    return rate == 0 ? kNever : now + (left + rate - 1) / rate;
  }
};

/// Whether kernels of this class hold every multiprocessor until they end, so that a collective
/// that starts beside one finds no room.
constexpr bool FillsGpu(DeviceUse use) {
  return use == DeviceUse::kMatmul || use == DeviceUse::kAttention;
}

}  // namespace dcsim
