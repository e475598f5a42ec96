#include "model/passes/fsdp_tasks.h"

#include <numeric>

namespace dcsim {

std::int64_t FsdpShardElements(const Graph& graph, ParamId param, int ranks) {
  const Value& value = graph.value(graph.param(param).value);
  if (value.shape.empty() || value.shape.front() == 0) {
    return value.numel();
  }
  const std::int64_t rows = value.shape.front();
  return DivideUp(rows, ranks) * (value.numel() / rows);
}

std::int64_t ShardElementBytes(const LowerState& state) {
  return ElementBytes(state.plan.options.training.master);
}
std::int64_t WholeElementBytes(const LowerState& state, ParamId param) {
  return ElementBytes(state.graph.dtype(param));
}

std::vector<std::int64_t> ShardSizes(const LowerState& state, const std::vector<ParamId>& params) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(params.size());
  for (const ParamId param : params) {
    sizes.push_back(FsdpShardElements(state.graph, param, state.plan.ranks));
  }
  return sizes;
}

std::int64_t ShardElementsOf(const LowerState& state, const std::vector<ParamId>& params) {
  const auto sizes = ShardSizes(state, params);
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

BufferId AddPoolBuffer(
    LowerState& state, Bytes bytes, BufferClass buffer_class, StreamRole pool, ParamId subject) {
  Buffer buffer;
  buffer.subject = subject.is_none() ? 0 : static_cast<std::uint32_t>(subject.index());
  buffer.bytes = bytes;
  buffer.buffer_class = buffer_class;
  buffer.pool = static_cast<std::uint8_t>(pool);
  return state.builder.AddBuffer(buffer);
}

std::uint32_t AddGroupCollective(LowerState& state,
                                 CollectiveKind kind,
                                 DType dtype,
                                 const std::vector<ParamId>& params) {
  Collective collective;
  collective.kind = kind;
  collective.dtype = dtype;
  collective.ranks = state.plan.ranks;
  collective.in_place = kind == CollectiveKind::kAllGather;
  collective.one_launch = true;
  std::int64_t offset = 0;
  for (const ParamId param : params) {
    const std::int64_t elements =
        state.plan.ranks * FsdpShardElements(state.graph, param, state.plan.ranks);
    collective.calls.push_back({param, elements, offset});
    offset += elements;
  }
  return static_cast<std::uint32_t>(state.builder.AddCollective(collective).index());
}

}  // namespace dcsim
