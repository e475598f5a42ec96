#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dcsim {

/// What a running task occupies of the GPU: the classes between which contention is measured.
enum class DeviceUse : std::uint8_t {
  kMatmul,      // persistent thread blocks on every multiprocessor
  kAttention,   // fused attention, forward and backward
  kStreaming,   // element-wise ops, reductions, copies: bound by memory
  kCollective,  // NCCL kernels, which hold some multiprocessors while they wait and transfer
  kCopyEngine,  // copies to or from peers, which take memory bandwidth and no multiprocessors
};
constexpr std::size_t kDeviceUses = 5;

std::span<const std::string_view> DeviceUseNames();

/// How fast a task runs while another one runs beside it, on another stream. Per mille of its speed
/// alone; with several beside it the slowest counts.
struct Contention {
  static constexpr std::int32_t kAlone = 1000;
  using Row = std::array<std::int32_t, kDeviceUses>;

  std::array<Row, kDeviceUses> permille = Undisturbed();
  bool measured = false;  // otherwise nothing disturbs anything

  static constexpr std::array<Row, kDeviceUses> Undisturbed() {
    std::array<Row, kDeviceUses> rates{};
    for (Row& row : rates) {
      row.fill(kAlone);
    }
    return rates;
  }
  std::int32_t Rate(DeviceUse work, DeviceUse beside) const {
    return permille[static_cast<std::size_t>(work)][static_cast<std::size_t>(beside)];
  }
};

}  // namespace dcsim
