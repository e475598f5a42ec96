#include "model/cost/group_channels.h"

#include <algorithm>

namespace dcsim {
namespace {

constexpr std::int64_t kCell = 16 << 10;  // traffic is dealt out in multiples of it

std::int64_t CeilDivide(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
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
        std::max<std::int64_t>(1, CeilDivide(payload.count() * traffic_of_byte, kCell));
    const std::int64_t here = std::min(cells, CeilDivide(room - taken, kCell));
    first.emplace_back(payload.count() / cells * here);
    taken += here * kCell;
    if (here < cells || taken >= room) {
      break;
    }
  }
  return first;
}

}  // namespace dcsim
