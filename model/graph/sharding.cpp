#include "model/graph/sharding.h"

#include <algorithm>

#include "model/base/units.h"
#include "model/ir/optimizer_spec.h"

namespace dcsim {
namespace {

bool FillsWhole(const Graph& graph, ParamId id, std::int64_t elements) {
  return elements * ElementBytes(graph.dtype(id)) % kTensorAlignment == 0;
}

}  // namespace

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

std::vector<FlatGroup> LaidOutGroups(const Graph& graph,
                                     const ScheduleOptions& options,
                                     int ranks) {
  std::vector<FlatGroup> groups = FlatGroups(graph);
  const auto is_odd = [&](ParamId id) {
    return !FillsWhole(graph, id, WeightElements(graph, id, options, ranks));
  };
  for (FlatGroup& group : groups) {
    if (options.align_tensors) {
      std::stable_sort(group.params.begin(), group.params.end(), [&](ParamId a, ParamId b) {
        const bool trainable = graph.param(a).requires_grad;
        return trainable == graph.param(b).requires_grad ? is_odd(a) < is_odd(b) : trainable;
      });
    }
  }
  return groups;
}

bool HasUnalignedParams(const Graph& graph, int ranks) {
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    const std::int64_t numel = graph.numel(ParamId(i));
    if (!FillsWhole(graph, ParamId(i), numel) ||
        !FillsWhole(graph, ParamId(i), ShardElements(numel, ranks))) {
      return true;
    }
  }
  return false;
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

std::vector<std::int64_t> WeightOffsets(const Graph& graph,
                                        const FlatGroup& group,
                                        const ScheduleOptions& options,
                                        int ranks) {
  const std::int64_t aligned = kTensorAlignment / ElementBytes(group.dtype);
  const std::int64_t cut =
      CutByParameter(options) ? 0 : PartitionElements(graph, group, options, ranks) * ranks;
  const std::int64_t granule = options.parameter_alignment ? aligned : 1;
  std::vector<std::int64_t> offsets;
  std::int64_t end = 0;
  bool trainable = true;
  for (const ParamId id : group.params) {
    if (trainable && !graph.param(id).requires_grad) {
      trainable = false;
      end = RoundUp(std::max(end, cut), options.align_tensors ? aligned : 1);
    }
    end = trainable ? RoundUp(end, granule) : end;
    offsets.push_back(end);
    end += WeightElements(graph, id, options, ranks);
  }
  offsets.push_back(std::max(end, cut));
  return offsets;
}

std::int64_t PartitionElements(const Graph& graph,
                               const FlatGroup& group,
                               const ScheduleOptions& options,
                               int ranks) {
  const bool by_parameter = CutByParameter(options);
  const std::int64_t granule =
      options.parameter_alignment ? kTensorAlignment / ElementBytes(group.dtype) : 1;
  std::int64_t elements = 0;
  for (const ParamId id : group.params) {
    if (graph.param(id).requires_grad) {
      const std::int64_t numel = graph.numel(id);
      elements = by_parameter ? elements + ShardElements(numel, ranks)
                              : RoundUp(elements, granule) + numel;
    }
  }
  return by_parameter ? elements : RoundUp(elements, std::int64_t{2} * ranks) / ranks;
}

std::vector<StateSize> StatesOf(const Graph& graph, const ScheduleOptions& options, int ranks) {
  std::vector<StateSize> states;
  for (const FlatGroup& group : FlatGroups(graph)) {
    const std::int64_t partition = PartitionElements(graph, group, options, ranks);
    for (std::size_t t = 0; t < kOptimizerTensors && partition > 0; ++t) {
      const auto tensor = static_cast<OptimizerTensor>(t);
      if (Keeps(options.training.algorithm, tensor)) {
        const std::int64_t element_bytes = ElementBytes(DTypeOf(options.training, tensor));
        states.push_back({{group.dtype, tensor}, Bytes(partition * element_bytes)});
      }
    }
  }
  return states;
}

}  // namespace dcsim
