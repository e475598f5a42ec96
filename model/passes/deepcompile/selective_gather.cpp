#include "model/passes/deepcompile/selective_gather.h"

#include <algorithm>

namespace dcsim {
namespace {

constexpr double kMemoryMargin = 0.1;  // MEM_MARGIN

double TimePerByte(const KeepCandidate& candidate) {
  const auto bytes = static_cast<double>(candidate.bytes.count());
  return bytes > 0 ? static_cast<double>(candidate.time.ns()) / bytes : 0;
}

Bytes BudgetOf(const KeepMemory& memory, DeepSpeedVersion version) {
  const auto device = static_cast<double>(memory.device.count());
  const Bytes profiled =
      Bytes(static_cast<std::int64_t>(device * (1 - kMemoryMargin))) - memory.peak;
  Bytes budget = std::max(Bytes(0), profiled);
  if (version == DeepSpeedVersion::kRelease0198) {
    const Bytes margin(static_cast<std::int64_t>(device * kMemoryMargin));
    budget = std::min(budget, std::max(Bytes(0), memory.available - margin));
  }
  return budget;
}

}  // namespace

std::vector<ParamId> SelectKept(std::vector<KeepCandidate> candidates,
                                const KeepMemory& memory,
                                DeepSpeedVersion version) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const KeepCandidate& a, const KeepCandidate& b) {
                     return TimePerByte(a) > TimePerByte(b);
                   });
  const Bytes budget = BudgetOf(memory, version);
  std::vector<ParamId> kept;
  Bytes total;
  for (const KeepCandidate& candidate : candidates) {
    if (budget == Bytes(0) || total + candidate.bytes > budget) {
      break;
    }
    total += candidate.bytes;
    kept.push_back(candidate.param);
  }
  return kept;
}

}  // namespace dcsim
