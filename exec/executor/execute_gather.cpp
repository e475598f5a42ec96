#include <algorithm>

#include <ATen/ops/empty.h>

#include "exec/communicator/peer_gather.h"
#include "exec/executor/execute.h"

namespace dcsim::exec {

namespace {

/// The tensor of a parameter that the task uses in a buffer of that class, or null.
at::Tensor* FindShard(ExecutorState& state, TaskId id, ParamId param, BufferClass buffer_class) {
  const auto uses = state.schedule().uses(id);
  const auto shard = std::find_if(uses.begin(), uses.end(), [&](const BufferUse& use) {
    const Buffer& buffer = state.schedule().buffer(use.buffer);
    return buffer.buffer_class == buffer_class && buffer.subject == param.index();
  });
  return shard == uses.end() ? nullptr : &state.buffers[shard->buffer.index()];
}

/// This rank's shard as the optimizer left it: brought from the host, or of the flat weights.
at::Tensor StoredShard(ExecutorState& state, TaskId id, ParamId param) {
  if (state.offloads_params()) {
    return *FindShard(state, id, param, BufferClass::kParameter);
  }
  const ParamPlace& place = state.layout.place(param);
  return state.flat[place.group].weights.narrow(0, place.weights, place.shard);
}

at::Tensor ShardOf(ExecutorState& state, TaskId id, ParamId param) {
  const at::Tensor* cast = FindShard(state, id, param, BufferClass::kTemporary);
  return cast != nullptr ? *cast : StoredShard(state, id, param);
}

void GatherByNccl(ExecutorState& state, TaskId id, const Collective& collective) {
  Communicator& communicator = state.communicator(collective);
  communicator.StartGroup();
  for (const CollectiveCall& call : collective.calls) {
    communicator.AllGather(ShardOf(state, id, call.param), state.gathered[call.param.index()]);
  }
  communicator.EndGroup();
}

void GatherByCopies(ExecutorState& state, const Collective& collective) {
  std::vector<PeerGather> gathers;
  for (const CollectiveCall& call : collective.calls) {
    const ParamPlace& place = state.layout.place(call.param);
    gathers.push_back(
        {state.peers[place.group], place.weights, place.shard, state.gathered[call.param.index()]});
  }
  GatherFromPeers(gathers, state.rank());
}

}  // namespace

void ExecuteCastShard(ExecutorState& state, TaskId id) {
  const ParamId param(state.work(id).subject);
  at::Tensor* cast = FindShard(state, id, param, BufferClass::kTemporary);
  *cast =
      StoredShard(state, id, param).to(ExecutorState::ToScalar(state.graph().gather_dtype(param)));
}

void ExecuteGather(ExecutorState& state, TaskId id) {
  const Collective& collective = state.collective(state.work(id).subject);
  for (const CollectiveCall& call : collective.calls) {
    at::Tensor& gathered = state.gathered[call.param.index()];
    if (!gathered.defined()) {
      gathered = at::empty({call.elements}, state.options(collective.dtype));
    }
  }
  if (collective.engine == Engine::kCopyEngine) {
    GatherByCopies(state, collective);
  } else {
    GatherByNccl(state, id, collective);
  }
  for (const CollectiveCall& call : collective.calls) {
    const Param& param = state.graph().param(call.param);
    const Value& value = state.graph().value(param.value);
    state.frame[param.value.index()] =
        state.gathered[call.param.index()].narrow(0, 0, value.numel()).view(value.shape);
  }
}

void RecordStreams(const ExecutorState& state, const Buffer& buffer, const at::Tensor& tensor) {
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    if ((buffer.recorded_streams >> s & 1U) != 0) {
      state.streams.RecordStream(tensor, static_cast<StreamRole>(s));
    }
  }
}

void DropGathered(ExecutorState& state, const Buffer& buffer) {
  const ParamId param(buffer.subject);
  at::Tensor& gathered = state.gathered[param.index()];
  RecordStreams(state, buffer, gathered);
  DropStorage(state, state.graph().storage_of(state.graph().param(param).value));
  gathered.reset();
}

}  // namespace dcsim::exec
