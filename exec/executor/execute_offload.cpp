#include <algorithm>

#include <ATen/ops/empty.h>

#include "exec/executor/execute.h"

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

/// Pinned memory that a copy writes or reads.
at::Tensor& HostTensor(ExecutorState& state, TaskId id) {
  const auto uses = state.schedule().uses(id);
  const auto host = std::find_if(uses.begin(), uses.end(), [&](const BufferUse& use) {
    return state.schedule().buffer(use.buffer).on_host();
  });
  return state.buffers[host->buffer.index()];
}

}  // namespace

void AllocatePinned(ExecutorState& state) {
  for (std::size_t i = 0; i < state.buffers.size(); ++i) {
    const Buffer& buffer = state.schedule().buffers()[i];
    if (buffer.on_host()) {
      const auto elements = buffer.bytes.count() / ElementBytes(DType::kFloat32);
      state.buffers[i] = at::empty(
          {elements}, at::TensorOptions().dtype(at::kFloat).pinned_memory(state.streams.on_gpu()));
    }
  }
}

void ExecuteOffload(ExecutorState& state, TaskId id) {
  HostTensor(state, id).copy_(StateTensor(state, state.work(id).subject), /*non_blocking=*/true);
}

/// The new tensor comes from the compute stream's pool, as DeepSpeed allocates it.
void ExecuteReload(ExecutorState& state, TaskId id) {
  at::Tensor& tensor = StateTensor(state, state.work(id).subject);
  {
    const Streams::Use compute(state.streams, StreamRole::kCompute);
    tensor = at::empty({HostTensor(state, id).numel()}, state.options(DType::kFloat32));
  }
  tensor.copy_(HostTensor(state, id), /*non_blocking=*/true);
}

void DropState(ExecutorState& state, const Buffer& buffer) {
  at::Tensor& tensor = StateTensor(state, buffer.subject);
  RecordStreams(state, buffer, tensor);
  tensor.reset();
}

}  // namespace dcsim::exec
