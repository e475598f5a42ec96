#include <algorithm>

#include "model/passes/lower_state.h"

namespace dcsim {
namespace {

/// Of elements of a parameter as it is gathered, from the gather stream's pool as DeepCompile
/// allocates them.
Buffer GatherPoolBuffer(const LowerState& state,
                        ParamId param,
                        std::int64_t elements,
                        BufferClass buffer_class) {
  Buffer buffer;
  buffer.bytes = Bytes(elements * ElementBytes(state.graph.gather_dtype(param)));
  buffer.subject = static_cast<std::uint32_t>(param.index());
  buffer.pool = static_cast<std::uint8_t>(StreamRole::kGather);
  buffer.buffer_class = buffer_class;
  return buffer;
}

/// For a whole parameter.
BufferId AddGatheredBuffer(LowerState& state, ParamId param, std::int64_t elements) {
  Buffer buffer = GatherPoolBuffer(state, param, elements, BufferClass::kGatheredParameter);
  if (state.plan.options.release == ReleaseMode::kRecordStream) {
    buffer.recorded_streams = StreamBit(StreamRole::kCompute);
  }
  return state.builder.AddBuffer(buffer);
}

/// The task reads this rank's shard: of the flat weights, or brought from the host for this gather.
void ReadShard(LowerState& state, ParamId param, TaskDraft& draft) {
  AddReloadShard(state, param);
  if (const OffloadedShard& shard = state.shards[param.index()]; !shard.device.is_none()) {
    draft.waits.push_back(shard.reload);
    draft.Read(shard.device);
  } else {
    draft.Read(state.flat_of(param).weights);
  }
}

/// The gather stream waits for the compute stream's position.
void WaitForCompute(const LowerState& state, TaskDraft& draft) {
  if (const TaskId last = state.builder.last(StreamRole::kCompute); !last.is_none()) {
    draft.waits.push_back(last);
  }
}

bool CastsShard(const LowerState& state, ParamId param) {
  return state.graph.gather_dtype(param) != state.graph.dtype(param);
}

/// This rank's shard in the dtype of a fused cast, from the gather stream's pool. The gather behind
/// it frees it. The stream waits for compute here, not again for the gather.
BufferId AddCastShard(LowerState& state, ParamId param) {
  const std::int64_t elements = ShardElements(state.graph.numel(param), state.plan.ranks);
  const Buffer buffer = GatherPoolBuffer(state, param, elements, BufferClass::kTemporary);
  const BufferId shard = state.builder.AddBuffer(buffer);
  TaskDraft draft = state.Draft(TaskKind::kCastShard, StreamRole::kGather);
  const Bytes moved = Bytes(elements * ElementBytes(state.graph.dtype(param))) + buffer.bytes;
  draft.work = MemoryWork(MemoryPattern::kNarrow, moved, 1, 0, buffer.subject);
  draft.Allocate(shard);
  ReadShard(state, param, draft);
  draft.work.events = static_cast<std::uint16_t>(2 + draft.waits.size());
  WaitForCompute(state, draft);
  draft.Write(shard);
  state.builder.Add(draft);
  return shard;
}

/// Adds the parameter to the collective; allocates its buffer unless it is persistent.
void AddCall(LowerState& state, ParamId param, Collective& collective, TaskDraft& draft) {
  const std::int64_t elements = GatheredElements(state.graph.numel(param), state.plan.ranks);
  collective.calls.push_back({param, elements, 0});
  BufferId& buffer = state.gathered[param.index()];
  if (buffer.is_none()) {
    buffer = AddGatheredBuffer(state, param, elements);
    draft.Allocate(buffer);
  }
  if (CastsShard(state, param)) {
    const BufferId shard = AddCastShard(state, param);
    draft.Read(shard);
    draft.Free(shard);
  } else {
    ReadShard(state, param, draft);
  }
  draft.Write(buffer);
  state.is_valid[param.index()] = true;
}

/// One launch for parameters of one dtype; NCCL groups may mix dtypes, the cost tables do not.
void AddGatherOf(LowerState& state, DType dtype, const std::vector<ParamId>& params) {
  Collective collective;
  collective.kind = CollectiveKind::kAllGather;
  collective.engine = state.plan.options.gather_engine;
  collective.dtype = dtype;
  collective.ranks = state.plan.ranks;
  TaskDraft draft = state.Draft(TaskKind::kAllGather, StreamRole::kGather);
  for (const ParamId param : params) {
    AddCall(state, param, collective, draft);
  }
  // An event a parameter for who waits for its gather; and two to wait for compute.
  std::size_t events = draft.waits.size();
  for (const ParamId param : params) {
    events += CastsShard(state, param) ? 1U : 3U;
  }
  draft.work.events = static_cast<std::uint16_t>(events);
  const bool waits = std::any_of(params.begin(), params.end(),
                                 [&](ParamId param) { return !CastsShard(state, param); });
  if (waits) {
    WaitForCompute(state, draft);
  }
  draft.work.kind = Work::Kind::kCollective;
  draft.work.subject = static_cast<std::uint32_t>(state.builder.AddCollective(collective).index());
  const TaskId task = state.builder.Add(draft);
  for (const ParamId param : params) {
    state.gather_task[param.index()] = task;
  }
}

}  // namespace

void AddGather(LowerState& state, const GatherGroup& group) {
  std::map<DType, std::vector<ParamId>> missing;
  for (const ParamId param : group.params) {
    if (!state.is_valid[param.index()]) {
      missing[state.graph.gather_dtype(param)].push_back(param);
    }
  }
  const DeviceSynchronization& synchronize = state.plan.options.synchronize;
  for (const auto& [dtype, params] : missing) {
    if (synchronize.before_allgather) {
      AddDeviceSynchronize(state);
    }
    AddGatherOf(state, dtype, params);
    if (synchronize.after_allgather) {
      AddDeviceSynchronize(state);
    }
  }
}

void AddWaitForGather(LowerState& state, ParamId param) {
  TaskId& gather = state.gather_task[param.index()];
  if (gather.is_none()) {
    return;  // persistent, and the compute stream has waited for it in an earlier graph
  }
  AddWait(state, StreamRole::kCompute, gather);
  gather = TaskId::None();
}

void AddRelease(LowerState& state, ParamId param) {
  AddOffloadShard(state, param);
  if (state.is_persistent[param.index()]) {
    return;
  }
  TaskDraft draft = state.Draft(TaskKind::kRelease);
  BufferId& buffer = state.gathered[param.index()];
  draft.Free(buffer);
  state.builder.Add(draft);
  buffer = BufferId::None();
  state.is_valid[param.index()] = false;
}

}  // namespace dcsim
