#include "model/machine/contention.h"

#include <cmath>
#include <cstdlib>

namespace dcsim {

std::span<const std::string_view> DeviceUseNames() {
  static constexpr std::array<std::string_view, kDeviceUses> kNames = {
      "matmul", "attention", "streaming", "side_streaming", "collective", "copy_engine"};
  return kNames;
}

const BesideMemory::Table& BesideMemory::Of(int ranks) const {
  return *std::min_element(tables.begin(), tables.end(), [ranks](const Table& a, const Table& b) {
    return std::abs(a.ranks - ranks) < std::abs(b.ranks - ranks);
  });
}

Longer BesideMemory::Table::At(Bytes payload) const {
  const auto above = std::find_if(points.begin(), points.end(), [payload](const Point& point) {
    return payload <= point.payload;
  });
  if (above == points.begin()) {
    return points.front().longer;
  }
  if (above == points.end()) {
    return points.back().longer;
  }
  const Point& below = *(above - 1);
  const auto log = [](Bytes bytes) { return std::log(static_cast<double>(bytes.count())); };
  const double share =
      (log(payload) - log(below.payload)) / (log(above->payload) - log(below.payload));
  const auto step = static_cast<double>(above->longer.permille() - below.longer.permille());
  return Longer::FromPermille(below.longer.permille() + std::lround(share * step));
}

Share DemandOf(Duration moving, Duration device) {
  return Share::Of(moving.ns(), std::max<std::int64_t>(1, device.ns()));
}

}  // namespace dcsim
