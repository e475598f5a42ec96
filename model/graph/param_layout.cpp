#include "model/graph/param_layout.h"

#include <algorithm>

namespace dcsim {

ParamLayout::ParamLayout(const Graph& graph, const ScheduleOptions& options, int ranks)
    : stage_(options.stage),
      ranks_(ranks),
      by_parameter_(CutByParameter(options)),
      groups_(LaidOutGroups(graph, options, ranks)),
      places_(graph.params.size()) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    partitions_.push_back(PartitionElements(graph, groups_[g], options, ranks));
    const std::vector<std::int64_t> offsets = WeightOffsets(graph, groups_[g], options, ranks);
    weights_.push_back(offsets.back());
    std::int64_t partition = 0;
    for (std::size_t i = 0; i < groups_[g].params.size(); ++i) {
      const ParamId id = groups_[g].params[i];
      ParamPlace& place = places_[id.index()];
      place.group = g;
      place.numel = graph.numel(id);
      place.shard = ShardElements(place.numel, ranks);
      place.trainable = graph.param(id).requires_grad;
      place.weights = offsets[i];
      place.partition = partition;
      partition += place.trainable ? place.shard : 0;
    }
  }
}

OwnedPart ParamLayout::owned(ParamId id, int rank) const {
  const ParamPlace& where = place(id);
  if (by_parameter_) {
    const std::int64_t begin = std::min(rank * where.shard, where.numel);
    return {begin, std::min(begin + where.shard, where.numel), where.partition};
  }
  const std::int64_t size = partitions_[where.group];
  const std::int64_t first = std::max(rank * size, where.weights);
  const std::int64_t last = std::min((rank + 1) * size, where.weights + where.numel);
  if (first >= last) {
    return {};
  }
  return {first - where.weights, last - where.weights, first - rank * size};
}

OwnedShare ParamLayout::owned(std::span<const ParamId> params, int rank) const {
  OwnedShare share;
  for (const ParamId id : params) {
    const OwnedPart own = owned(id, rank);
    const std::int64_t elements = by_parameter_ ? place(id).shard : own.end - own.begin;
    share.parts += elements > 0 ? 1 : 0;
    share.elements += elements;
  }
  return share;
}

std::size_t ParamLayout::most_parts(std::span<const ParamId> params) const {
  if (by_parameter_) {
    return params.size();
  }
  std::vector<std::size_t> parts(static_cast<std::size_t>(ranks_));
  for (const ParamId id : params) {
    const ParamPlace& where = place(id);
    const std::int64_t size = partitions_[where.group];
    for (std::int64_t rank = where.weights / size; rank * size < where.weights + where.numel;
         ++rank) {
      ++parts[static_cast<std::size_t>(rank)];
    }
  }
  return *std::max_element(parts.begin(), parts.end());
}

}  // namespace dcsim
