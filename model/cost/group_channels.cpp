#include "model/cost/group_channels.h"

#include <algorithm>

namespace dcsim {
namespace {

constexpr std::int64_t kCell = 16 << 10;  // traffic is dealt out in multiples of it

std::int64_t CellsOf(std::int64_t traffic) {
  return RoundUp(traffic, kCell) / kCell;
}

}  // namespace

std::vector<Bytes> FirstChannel(CollectiveKind kind,
                                std::span<const Bytes> payloads,
                                int channels) {
  const std::int64_t traffic_of_byte = kind == CollectiveKind::kAllReduce ? 2 : 1;
  std::vector<Bytes> ascending(payloads.begin(), payloads.end());
  std::sort(ascending.begin(), ascending.end());
  std::int64_t whole = 0;
  for (const Bytes payload : ascending) {
    whole += std::max(kCell, payload.count() * traffic_of_byte);
  }
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

}  // namespace dcsim
