#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/base/units.h"

namespace dcsim {

/// What a running task occupies of the GPU: the classes between which contention is measured.
enum class DeviceUse : std::uint8_t {
  kMatmul,         // persistent thread blocks on every multiprocessor
  kAttention,      // fused attention, forward and backward
  kStreaming,      // element-wise ops and reductions of the compute stream: bound by memory
  kSideStreaming,  // copies and divisions on the other streams, whose thread blocks go first
  kCollective,     // NCCL kernels, which hold some multiprocessors while they wait and transfer
  kCopyEngine,     // copies to or from peers, which take memory bandwidth and no multiprocessors
};
constexpr std::size_t kDeviceUses = 6;

std::span<const std::string_view> DeviceUseNames();

/// How fast a task runs while another one runs beside it, on another stream. Per mille of its speed
/// alone; with several beside it the slowest counts.
struct Contention {
  static constexpr std::int32_t kAlone = 1000;
  using Row = std::array<std::int32_t, kDeviceUses>;

  std::array<Row, kDeviceUses> permille = Undisturbed();
  bool measured = false;  // otherwise nothing disturbs anything

  /// Multiprocessors that a matrix product loses to a collective: those of its thread blocks, and
  /// their neighbours where the product runs in clusters of two. 0: the class's rate holds for all.
  int collective_multiprocessors = 0;
  Duration streaming_kernel;  // that a streaming kernel beside a collective loses besides its rate
  std::int32_t to_host = kAlone;  // of a copy to the host, beside the compute stream
  Duration collective_start;  // beside compute, until all thread blocks of a collective have room

  /// How far apart in the step the ranks' compute is: at most, when it goes on behind a collective
  /// that it waited for, and by how much they drift apart then, of the time that passes.
  Duration rank_drift;
  Duration rank_skew;
  int drift_permille = 0;
  /// Of a collective that compute waits for: what it waits for the last rank besides the drift.
  /// Without it the gap before a collective has such waits.
  std::optional<Duration> idle_wait;

  static constexpr std::array<Row, kDeviceUses> Undisturbed() {
    std::array<Row, kDeviceUses> rates{};
    for (Row& row : rates) {
      row.fill(kAlone);
    }
    return rates;
  }
  /// How far apart two ranks' compute is `since` they last went on together.
  Duration RanksApart(Duration since) const {
    constexpr std::int64_t kWhole = 1000;
    return std::min(rank_drift, rank_skew + Duration::FromNs(since.ns() * drift_permille / kWhole));
  }
  /// What a collective beside no compute waits for the last rank, `since` all last went on
  /// together.
  Duration IdleWait(Duration since) const {
    constexpr std::int64_t kWhole = 1000;
    return std::min(rank_drift,
                    *idle_wait + Duration::FromNs(since.ns() * drift_permille / kWhole));
  }
  std::int32_t Rate(DeviceUse work, DeviceUse beside) const {
    return permille[static_cast<std::size_t>(work)][static_cast<std::size_t>(beside)];
  }
};

}  // namespace dcsim
