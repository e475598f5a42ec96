#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>

#include "exec/executor/execute.h"
#include "model/base/error.h"

namespace dcsim::exec {
namespace {

at::Tensor& StateTensor(ExecutorState& state, std::uint32_t index) {
  FlatTensors& flat = state.flat[index / kOptimizerTensors];
  switch (static_cast<OptimizerTensor>(index % kOptimizerTensors)) {
    case OptimizerTensor::kFirstMoment:
      return flat.first_moment;
    case OptimizerTensor::kSecondMoment:
      return flat.second_moment;
    case OptimizerTensor::kMaster:
      return flat.master;
  }
  return flat.master;
}

/// The buffer that a copy reads or writes, on the host or on the device.
BufferId BufferOf(const ExecutorState& state, TaskId id, bool on_host) {
  const auto uses = state.schedule().uses(id);
  const auto found = std::find_if(uses.begin(), uses.end(), [&](const BufferUse& use) {
    return state.schedule().buffer(use.buffer).on_host() == on_host;
  });
  return found->buffer;
}

BufferClass DeviceClass(const ExecutorState& state, TaskId id) {
  return state.schedule().buffer(BufferOf(state, id, /*on_host=*/false)).buffer_class;
}

/// Pinned memory that a copy of an optimizer state writes or reads.
at::Tensor HostState(const ExecutorState& state, TaskId id) {
  return state.buffers[BufferOf(state, id, /*on_host=*/true).index()].view(at::kFloat);
}

at::Tensor HostShard(const ExecutorState& state, ParamId param) {
  const ParamPlace& place = state.layout.place(param);
  return state.flat[place.group].weights.narrow(0, place.weights, place.shard);
}

/// What a forward graph saves of a storage.
ValueId SavedValue(const Graph& graph, StorageId storage) {
  for (const Subgraph& subgraph : graph.graphs) {
    for (const GraphOutput& output : subgraph.outputs) {
      if (output.kind == GraphOutputKind::kSaved && graph.storage_of(output.value) == storage) {
        return output.value;
      }
    }
  }
  DCSIM_CHECK(false) << "storage " << storage.index() << " is not saved";
  return ValueId::None();
}

/// An activation as the host has it and as it comes back: with its own strides, if its elements
/// fill its memory (empty_like, as DeepSpeed allocates both).
at::Tensor LayoutOf(const Value& value) {
  const at::Tensor recorded =
      at::empty_strided(value.shape, value.strides,
                        at::TensorOptions(ExecutorState::ToScalar(value.dtype)).device(at::kMeta));
  return at::empty_like(recorded);
}

at::Tensor HostActivation(const ExecutorState& state, TaskId id, const Value& value) {
  const at::Tensor layout = LayoutOf(value);
  return state.buffers[BufferOf(state, id, /*on_host=*/true).index()]
      .view(layout.scalar_type())
      .as_strided(layout.sizes(), layout.strides());
}

void OffloadActivation(ExecutorState& state, TaskId id) {
  const ValueId value = SavedValue(state.graph(), StorageId(state.work(id).subject));
  const at::Tensor& tensor = state.frame[value.index()];
  HostActivation(state, id, state.graph().value(value)).copy_(tensor, /*non_blocking=*/true);
  RecordStreams(state, state.schedule().buffer(BufferOf(state, id, /*on_host=*/false)), tensor);
}

void ReloadActivation(ExecutorState& state, TaskId id) {
  const StorageId storage(state.work(id).subject);
  const ValueId saved = SavedValue(state.graph(), storage);
  const Value& value = state.graph().value(saved);
  const at::Tensor layout = LayoutOf(value);
  const at::Tensor tensor =
      at::empty_strided(layout.sizes(), layout.strides(), state.options(value.dtype));
  tensor.copy_(HostActivation(state, id, value), /*non_blocking=*/true);
  const BufferId buffer = BufferOf(state, id, /*on_host=*/false);
  state.buffers[buffer.index()] = tensor;
  state.storage_buffer[storage.index()] = buffer;
  state.frame[saved.index()] = tensor;
}

void ReloadShard(ExecutorState& state, TaskId id) {
  const ParamId param(state.work(id).subject);
  at::Tensor& shard = state.buffers[BufferOf(state, id, /*on_host=*/false).index()];
  const at::Tensor host = HostShard(state, param);
  shard = at::empty({host.numel()}, state.options(state.graph().dtype(param)));
  shard.copy_(host, /*non_blocking=*/true);
}

}  // namespace

void AllocatePinned(ExecutorState& state) {
  for (std::size_t i = 0; i < state.buffers.size(); ++i) {
    const Buffer& buffer = state.schedule().buffers()[i];
    if (buffer.on_host() && !buffer.starts_filled()) {
      state.buffers[i] =
          at::empty({buffer.bytes.count()},
                    at::TensorOptions().dtype(at::kByte).pinned_memory(state.streams.on_gpu()));
    }
  }
}

void ExecuteOffload(ExecutorState& state, TaskId id) {
  const std::uint32_t subject = state.work(id).subject;
  const at::Tensor& device =
      state.buffers[BufferOf(state, id, /*on_host=*/false).index()];  // of shards
  switch (DeviceClass(state, id)) {
    case BufferClass::kParameter:
      HostShard(state, ParamId(subject)).copy_(device, /*non_blocking=*/true);
      return;
    case BufferClass::kTemporary:  // what the optimizer has made of a group's shards
      state.flat[subject].weights.narrow(0, 0, device.numel()).copy_(device, /*non_blocking=*/true);
      return;
    case BufferClass::kActivation:
      return OffloadActivation(state, id);
    default:
      HostState(state, id).copy_(StateTensor(state, subject), /*non_blocking=*/true);
  }
}

/// A new optimizer state comes from the compute stream's pool, as DeepSpeed allocates it, what else
/// comes back from the reload stream's.
void ExecuteReload(ExecutorState& state, TaskId id) {
  switch (DeviceClass(state, id)) {
    case BufferClass::kParameter:
      return ReloadShard(state, id);
    case BufferClass::kActivation:
      return ReloadActivation(state, id);
    default:
      break;
  }
  const at::Tensor host = HostState(state, id);
  at::Tensor& tensor = StateTensor(state, state.work(id).subject);
  {
    const Streams::Use compute(state.streams, StreamRole::kCompute);
    tensor = at::empty({host.numel()}, state.options(DType::kFloat32));
  }
  tensor.copy_(host, /*non_blocking=*/true);
}

void DropState(ExecutorState& state, const Buffer& buffer) {
  at::Tensor& tensor = StateTensor(state, buffer.subject);
  RecordStreams(state, buffer, tensor);
  tensor.reset();
}

}  // namespace dcsim::exec
