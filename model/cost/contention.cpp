#include "model/cost/contention.h"

namespace dcsim {

std::span<const std::string_view> DeviceUseNames() {
  static constexpr std::array<std::string_view, kDeviceUses> kNames = {
      "matmul", "attention", "streaming", "side_streaming", "collective", "copy_engine"};
  return kNames;
}

}  // namespace dcsim
