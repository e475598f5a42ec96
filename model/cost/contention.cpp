#include "model/cost/contention.h"

namespace dcsim {

std::span<const std::string_view> DeviceUseNames() {
  static constexpr std::array<std::string_view, kDeviceUses> kNames = {
      "matmul", "attention", "streaming", "side_streaming", "collective", "copy_engine"};
  return kNames;
}

std::int32_t DemandOf(Duration moving, Duration device) {
  return static_cast<std::int32_t>(std::min<std::int64_t>(
      Contention::kAlone,
      moving.ns() * Contention::kAlone / std::max<std::int64_t>(1, device.ns())));
}

}  // namespace dcsim
