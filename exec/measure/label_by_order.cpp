#include "exec/measure/label_by_order.h"

#include <map>

namespace dcsim::exec {
namespace {

using Sequence = std::vector<const KernelRecord*>;

std::map<std::uint32_t, Sequence> ByStream(const std::vector<KernelRecord>& records) {
  std::map<std::uint32_t, Sequence> streams;
  for (const KernelRecord& record : records) {
    streams[record.stream].push_back(&record);
  }
  return streams;
}

}  // namespace

std::optional<std::vector<std::vector<KernelRecord>>> LabelByOrder(
    const std::vector<KernelRecord>& labelled, const std::vector<KernelRecord>& bare, int steps) {
  const auto step_of_stream = ByStream(labelled);
  const auto repeats = static_cast<std::size_t>(steps);
  if (bare.size() != labelled.size() * repeats) {
    return std::nullopt;
  }
  std::map<std::uint32_t, std::size_t> passed;  // of each stream's records
  std::vector<std::vector<KernelRecord>> result(repeats);
  for (const KernelRecord& record : bare) {
    const auto stream = step_of_stream.find(record.stream);
    if (stream == step_of_stream.end()) {
      return std::nullopt;
    }
    const Sequence& sequence = stream->second;
    const std::size_t position = passed[record.stream]++;
    const KernelRecord& same = *sequence[position % sequence.size()];
    if (position / sequence.size() >= repeats || same.name != record.name) {
      return std::nullopt;
    }
    result[position / sequence.size()].push_back(record);
    result[position / sequence.size()].back().label = same.label;
  }
  return result;
}

}  // namespace dcsim::exec
