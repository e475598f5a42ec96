#include "model/cost/group_channels.h"

#include <algorithm>

namespace dcsim {
namespace {

constexpr std::int64_t kCell = 16 << 10;  // traffic is dealt out in multiples of it

std::int64_t CellsOf(std::int64_t traffic) {
  return DivideUp(traffic, kCell);
}

std::int64_t TrafficOfByte(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce ? 2 : 1;
}

std::int64_t TrafficOf(CollectiveKind kind, std::span<const Bytes> payloads) {
  std::int64_t traffic = 0;
  for (const Bytes payload : payloads) {
    traffic += std::max(kCell, payload.count() * TrafficOfByte(kind));
  }
  return traffic;
}

}  // namespace

std::vector<Bytes> FirstChannel(CollectiveKind kind,
                                std::span<const Bytes> payloads,
                                int channels) {
  const std::int64_t traffic_of_byte = TrafficOfByte(kind);
  std::vector<Bytes> ascending(payloads.begin(), payloads.end());
  std::sort(ascending.begin(), ascending.end());
  const std::int64_t whole = TrafficOf(kind, ascending);
  const std::int64_t room = std::max(kCell, whole / channels);
  std::vector<Bytes> first;
  std::int64_t taken = 0;
  for (const Bytes payload : ascending) {
    const std::int64_t cells =
        std::max<std::int64_t>(1, CellsOf(payload.count() * traffic_of_byte));
    const std::int64_t here = std::min(cells, CellsOf(room - taken));
    first.emplace_back(payload.count() / cells * here);
    taken += here * kCell;
    if (here < cells || taken >= room) {
      break;
    }
  }
  return first;
}

int ChannelsTaken(CollectiveKind kind, std::span<const Bytes> payloads, int channels) {
  return static_cast<int>(std::min<std::int64_t>(channels, CellsOf(TrafficOf(kind, payloads))));
}

}  // namespace dcsim
