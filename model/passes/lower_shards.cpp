#include "model/passes/lower_state.h"

namespace dcsim {
namespace {

TaskDraft CopyDraft(const LowerState& state, ParamId param, TaskKind kind, StreamRole stream) {
  const Bytes bytes = state.builder.buffer(state.shards[param.index()].host).bytes;
  return HostCopyBehindCompute(state, kind, stream, bytes, param.index());
}

BufferId AddDeviceShard(LowerState& state, ParamId param, Bytes bytes) {
  Buffer buffer;
  buffer.bytes = bytes;
  buffer.subject = static_cast<std::uint32_t>(param.index());
  buffer.pool = static_cast<std::uint8_t>(StreamRole::kReload);
  buffer.buffer_class = BufferClass::kParameter;
  buffer.recorded_streams = StreamBit(StreamRole::kOffload);
  return state.builder.AddBuffer(buffer);
}

}  // namespace

void AddHostShards(LowerState& state, std::size_t group) {
  for (const ParamId param : state.layout.groups()[group].params) {
    Buffer buffer;
    buffer.bytes = Bytes(ShardElements(state.graph.numel(param), state.plan.ranks) *
                         ElementBytes(state.graph.dtype(param)));
    buffer.subject = static_cast<std::uint32_t>(param.index());
    buffer.pool = static_cast<std::uint8_t>(group + 1);
    buffer.buffer_class = BufferClass::kPinnedHost;
    buffer.resident = true;
    state.shards[param.index()].host = state.builder.AddBuffer(buffer);
  }
}

void AddReloadShard(LowerState& state, ParamId param) {
  OffloadedShard& shard = state.shards[param.index()];
  if (shard.host.is_none() || !shard.device.is_none()) {
    return;
  }
  TaskDraft copy = CopyDraft(state, param, TaskKind::kReload, StreamRole::kReload);
  if (!shard.offload.is_none()) {
    copy.waits.push_back(shard.offload);
  }
  shard.device = AddDeviceShard(state, param, state.builder.buffer(shard.host).bytes);
  copy.Allocate(shard.device);
  copy.Read(shard.host);
  copy.Write(shard.device);
  shard.reload = state.builder.Add(copy);
}

void AddOffloadShard(LowerState& state, ParamId param) {
  OffloadedShard& shard = state.shards[param.index()];
  if (shard.device.is_none()) {
    return;
  }
  TaskDraft copy = CopyDraft(state, param, TaskKind::kOffload, StreamRole::kOffload);
  copy.waits.push_back(shard.reload);
  copy.Read(shard.device);
  copy.Write(shard.host);
  shard.offload = state.builder.Add(copy);
  AddFreeBehindCopy(state, shard.device);
  shard.device = BufferId::None();
}

BufferId AddUpdatedBuffer(LowerState& state, std::size_t group) {
  Buffer buffer;
  buffer.bytes =
      Bytes(state.flat[group].partition * ElementBytes(state.layout.groups()[group].dtype));
  buffer.subject = static_cast<std::uint32_t>(group);
  buffer.buffer_class = BufferClass::kTemporary;
  buffer.recorded_streams = StreamBit(StreamRole::kOffload);
  return state.builder.AddBuffer(buffer);
}

void AddOffloadUpdated(LowerState& state, std::size_t group, BufferId updated) {
  TaskDraft copy = HostCopyBehindCompute(state, TaskKind::kOffload, StreamRole::kOffload,
                                         state.builder.buffer(updated).bytes, group);
  copy.Read(updated);
  for (const ParamId param : state.layout.groups()[group].params) {
    if (state.graph.param(param).requires_grad) {
      copy.Write(state.shards[param.index()].host);
    }
  }
  state.builder.Add(copy);
  AddFreeBehindCopy(state, updated);
}

void AddReloadStreamWait(LowerState& state) {
  const TaskId last = state.builder.last(StreamRole::kOffload);
  if (!state.plan.options.offload_parameters || last.is_none()) {
    return;
  }
  TaskDraft draft = state.Draft(TaskKind::kWait, StreamRole::kReload);
  draft.waits.push_back(last);  // which waits for the compute stream (AddOffloadStreamWait)
  state.builder.Add(draft);
}

}  // namespace dcsim
