#include <ATen/ops/empty.h>

#include "exec/executor/execute.h"
#include "model/base/error.h"

namespace dcsim::exec {

BufferId UsedBuffer(const ExecutorState& state, TaskId id, bool writes) {
  for (const BufferUse& use : state.schedule().uses(id)) {
    if (use.writes == writes) {
      return use.buffer;
    }
  }
  DCSIM_CHECK(false) << "task " << id.index() << " uses no such buffer";
  return BufferId::None();
}

namespace {

/// A bucket, a receive buffer or a gradient, flat, as elements of a dtype. The former two are kept
/// as bytes.
at::Tensor Elements(const ExecutorState& state, BufferId id, DType dtype) {
  const at::Tensor& tensor = state.buffers[id.index()];
  return tensor.scalar_type() == at::kByte ? tensor.view(ExecutorState::ToScalar(dtype))
                                           : tensor.view(-1);
}

at::Tensor Gradient(const ExecutorState& state, ParamId param) {
  return state.frame[state.gradient_of[param.index()].index()];
}

at::Tensor Partition(const ExecutorState& state, ParamId param) {
  return state.flat[state.layout.place(param).group].gradient_partition;
}

std::int64_t CountElements(const Collective& collective) {
  std::int64_t elements = 0;
  for (const CollectiveCall& call : collective.calls) {
    elements += call.elements;
  }
  return elements;
}

bool IsEager(const ExecutorState& state) {
  return state.schedule().options().gradient_buckets == GradientBuckets::kEager;
}

/// Whether earlier micro-steps of this step have left gradients in the partition.
bool Adds(const ExecutorState& state) {
  return !ReducesOnce(state.schedule().options()) && state.micro_step > 0;
}

}  // namespace

void AllocateBuffers(ExecutorState& state, TaskId id) {
  for (const MemoryStep& step : state.schedule().memory(id)) {
    const Buffer& buffer = state.schedule().buffer(step.buffer);
    if (!step.frees) {
      state.buffers[step.buffer.index()] =
          at::empty({buffer.bytes.count()}, state.options(DType::kUInt8));
    }
  }
}

void ExecuteAccumulate(ExecutorState& state, TaskId id) {
  const ParamId param(state.work(id).subject);
  state.buffers[UsedBuffer(state, id, true).index()].add_(Gradient(state, param));
}

void ExecuteMakeContiguous(ExecutorState& state, TaskId id) {
  const ParamId param(state.work(id).subject);
  state.buffers[UsedBuffer(state, id, true).index()] =
      Gradient(state, param).clone(at::MemoryFormat::Contiguous);
}

void ExecuteReduceGradCopy(ExecutorState& state, TaskId id) {
  const Work& work = state.work(id);
  const ParamId param(work.subject);
  const at::Tensor& gradient = state.buffers[UsedBuffer(state, id, false).index()];
  const at::Tensor bucket =
      Elements(state, UsedBuffer(state, id, true), state.graph().dtype(param));
  const std::int64_t numel = gradient.numel();
  bucket.narrow(0, work.offset, numel).copy_(gradient.view(-1), /*non_blocking=*/true);
  const std::int64_t padding = state.layout.by_parameter() && !IsEager(state)
                                   ? GatheredElements(numel, state.ranks()) - numel
                                   : 0;
  if (padding > 0) {
    bucket.narrow(0, work.offset + numel, padding).zero_();
  }
}

void ExecutePreDivide(ExecutorState& state, TaskId id) {
  const Collective& collective = state.collective(state.work(id).subject);
  const at::Tensor bucket = Elements(state, UsedBuffer(state, id, true), collective.dtype);
  if (IsEager(state)) {
    bucket.narrow(0, 0, CountElements(collective)).div_(state.ranks());
    return;
  }
  for (const CollectiveCall& call : collective.calls) {
    bucket.narrow(0, call.offset, call.elements).div_(state.ranks());
  }
}

namespace {

/// Where a reduce-scatter's result goes: the partition, or its place in the receive buffer.
at::Tensor ScatterTarget(const ExecutorState& state,
                         const CollectiveCall& call,
                         const at::Tensor& receive,
                         std::int64_t received) {
  const ParamPlace& place = state.layout.place(call.param);
  return receive.defined() ? receive.narrow(0, received, place.shard)
                           : Partition(state, call.param).narrow(0, place.partition, place.shard);
}

void ReduceScatterAll(ExecutorState& state,
                      const Collective& collective,
                      const at::Tensor& bucket,
                      const at::Tensor& receive) {
  Communicator& communicator = state.communicator(collective);
  std::int64_t received = 0;
  communicator.StartGroup();
  for (const CollectiveCall& call : collective.calls) {
    communicator.ReduceScatter(bucket.narrow(0, call.offset, call.elements),
                               ScatterTarget(state, call, receive, received));
    received += state.layout.place(call.param).shard;
  }
  communicator.EndGroup();
}

/// Eager ZeRO-3: one reduce-scatter, each rank's sum into its own part of the flat tensor.
void ScatterFlat(ExecutorState& state, const Collective& collective, const at::Tensor& flat) {
  const std::int64_t own = CountElements(collective) / state.ranks();
  state.communicator(collective).ReduceScatter(flat, flat.narrow(0, state.rank() * own, own));
}

void AllReduceAll(ExecutorState& state, const Collective& collective, const at::Tensor& bucket) {
  Communicator& communicator = state.communicator(collective);
  if (collective.one_launch) {
    const CollectiveCall& last = collective.calls.back();
    communicator.AllReduce(bucket.narrow(0, 0, last.offset + last.elements));
    return;
  }
  communicator.StartGroup();
  for (const CollectiveCall& call : collective.calls) {
    communicator.AllReduce(bucket.narrow(0, call.offset, call.elements));
  }
  communicator.EndGroup();
}

}  // namespace

void ExecuteReduce(ExecutorState& state, TaskId id) {
  const Collective& collective = state.collective(state.work(id).subject);
  if (!state.layout.by_parameter()) {
    AllReduceAll(state, collective, Elements(state, UsedBuffer(state, id, true), collective.dtype));
    return;
  }
  if (IsEager(state)) {
    return ScatterFlat(state, collective,
                       Elements(state, UsedBuffer(state, id, true), collective.dtype));
  }
  AllocateBuffers(state, id);
  const at::Tensor bucket = Elements(state, UsedBuffer(state, id, false), collective.dtype);
  const at::Tensor receive =
      Adds(state) ? Elements(state, UsedBuffer(state, id, true), collective.dtype) : at::Tensor();
  ReduceScatterAll(state, collective, bucket, receive);
}

void ExecuteStoreReduced(ExecutorState& state, TaskId id) {
  if (IsEager(state)) {
    return ExecuteEagerStore(state, id);
  }
  const Collective& collective = state.collective(state.work(id).subject);
  const at::Tensor source = Elements(state, UsedBuffer(state, id, false), collective.dtype);
  std::int64_t received = 0;
  for (const CollectiveCall& call : collective.calls) {
    const ParamPlace& place = state.layout.place(call.param);
    if (state.layout.by_parameter()) {
      Partition(state, call.param)
          .narrow(0, place.partition, place.shard)
          .add_(source.narrow(0, received, place.shard));
      received += place.shard;
      continue;
    }
    const OwnedPart own = state.layout.owned(call.param, state.rank());
    const std::int64_t count = own.end - own.begin;
    if (count == 0) {
      continue;
    }
    const at::Tensor target = Partition(state, call.param).narrow(0, own.partition, count);
    const at::Tensor reduced = source.narrow(0, call.offset + own.begin, count);
    if (Adds(state)) {
      target.add_(reduced);
    } else {
      target.copy_(reduced, /*non_blocking=*/true);
    }
  }
}

}  // namespace dcsim::exec
