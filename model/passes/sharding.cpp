#include "model/passes/sharding.h"

#include <algorithm>

#include "model/base/units.h"

namespace dcsim {

std::vector<FlatGroup> FlatGroups(const Graph& graph) {
  std::vector<FlatGroup> groups;
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    const ParamId id(i);
    const DType dtype = graph.dtype(id);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [dtype](const FlatGroup& each) { return each.dtype == dtype; });
    if (group == groups.end()) {
      groups.push_back({dtype, {}, 0, 0});
      group = groups.end() - 1;
    }
    group->params.push_back(id);
    group->elements += graph.numel(id);
    group->trainable += graph.param(id).requires_grad ? graph.numel(id) : 0;
  }
  for (FlatGroup& group : groups) {
    std::stable_partition(group.params.begin(), group.params.end(),
                          [&graph](ParamId id) { return graph.param(id).requires_grad; });
  }
  return groups;
}

std::int64_t WeightElements(const Graph& graph,
                            ParamId id,
                            const ScheduleOptions& options,
                            int ranks) {
  const std::int64_t numel = graph.numel(id);
  if (options.stage == 3) {
    return ShardElements(numel, ranks);
  }
  const bool padded = CutByParameter(options) && graph.param(id).requires_grad;
  return padded ? GatheredElements(numel, ranks) : numel;
}

std::int64_t WeightElements(const Graph& graph,
                            const FlatGroup& group,
                            const ScheduleOptions& options,
                            int ranks) {
  std::int64_t elements = 0;
  for (const ParamId id : group.params) {
    elements += WeightElements(graph, id, options, ranks);
  }
  if (CutByParameter(options)) {
    return elements;
  }
  const std::int64_t padded = PartitionElements(graph, group, ranks, false) * ranks;
  return elements + padded - group.trainable;
}

std::int64_t PartitionElements(const Graph& graph,
                               const FlatGroup& group,
                               int ranks,
                               bool by_parameter) {
  if (!by_parameter) {
    return RoundUp(group.trainable, std::int64_t{2} * ranks) / ranks;
  }
  std::int64_t elements = 0;
  for (const ParamId id : group.params) {
    elements += graph.param(id).requires_grad ? ShardElements(graph.numel(id), ranks) : 0;
  }
  return elements;
}

std::vector<StateSize> StatesOf(const Graph& graph, const ScheduleOptions& options, int ranks) {
  constexpr std::int64_t kStateBytes = 4;  // float32
  std::vector<StateSize> states;
  for (const FlatGroup& group : FlatGroups(graph)) {
    const std::int64_t partition = PartitionElements(graph, group, ranks, CutByParameter(options));
    for (std::size_t t = 0; t < kOptimizerTensors && partition > 0; ++t) {
      states.push_back(
          {{group.dtype, static_cast<OptimizerTensor>(t)}, Bytes(partition * kStateBytes)});
    }
  }
  return states;
}

}  // namespace dcsim
