#include <algorithm>

#include "model/passes/lower_state.h"

namespace dcsim {

std::vector<OwnedShare> OwnedShares(const LowerState& state,
                                    const std::vector<CollectiveCall>& calls) {
  std::vector<ParamId> params;
  params.reserve(calls.size());
  for (const CollectiveCall& call : calls) {
    params.push_back(call.param);
  }
  const int ranks = state.plan.ranks;
  const int told = state.by_parameter() ? 1 : std::min(ranks, kRanksTold);
  std::vector<OwnedShare> shares;
  shares.reserve(static_cast<std::size_t>(told));
  for (int i = 0; i < told; ++i) {
    shares.push_back(state.layout.owned(params, i * ranks / told));
  }
  return shares;
}

PartitionStore StoreOf(const LowerState& state, std::size_t group, DType from, bool adds) {
  const DType to = state.partition_dtype(group);
  const std::int64_t read = ElementBytes(from);
  const std::int64_t kept = ElementBytes(to);
  const bool by_parameter = state.by_parameter();
  const bool compact = state.eager() && !by_parameter && to != state.layout.groups()[group].dtype;
  adds = adds || compact;
  const MemoryPattern pattern = adds ? MemoryPattern::kAdd : MemoryPattern::kCopy;
  if (to == from) {
    return {pattern, (adds ? 3 : 2) * kept};
  }
  if (!state.eager() && !by_parameter) {
    return {adds ? MemoryPattern::kAdd : MemoryPattern::kWiden, read + (adds ? 2 : 1) * kept};
  }
  return {pattern, read + kept + (adds ? 3 : 2) * kept, 2, true};
}

void AddWidened(LowerState& state,
                TaskDraft& draft,
                const std::vector<CollectiveCall>& calls,
                bool at_once) {
  const std::size_t group = state.layout.place(calls.front().param).group;
  const std::int64_t element_bytes = ElementBytes(state.partition_dtype(group));
  std::vector<Bytes> sizes;
  for (const CollectiveCall& call : calls) {
    const ParamId param[] = {call.param};
    sizes.emplace_back(state.layout.owned(param, 0).elements * element_bytes);
  }
  if (!at_once) {
    sizes = {*std::max_element(sizes.begin(), sizes.end())};
  }
  std::vector<BufferId> widened;
  for (const Bytes bytes : sizes) {
    if (bytes > Bytes(0)) {
      Buffer buffer;
      buffer.bytes = bytes;
      buffer.buffer_class = BufferClass::kTemporary;
      buffer.pool = static_cast<std::uint8_t>(*draft.stream);
      widened.push_back(state.builder.AddBuffer(buffer));
      draft.Allocate(widened.back());
    }
  }
  for (const BufferId buffer : widened) {
    draft.Free(buffer);
  }
}

void SetStoreWork(TaskDraft& draft,
                  const std::vector<OwnedShare>& shares,
                  const PartitionStore& store,
                  std::uint32_t collective) {
  const auto work = [&](const OwnedShare& own) {
    return MemoryWork(store.pattern, Bytes(own.elements * store.bytes), own.parts * store.launches,
                      1, collective);
  };
  draft.work = work(shares.front());
  for (std::size_t i = 1; i < shares.size(); ++i) {
    draft.others.push_back(work(shares[i]));
  }
}

}  // namespace dcsim
