#include <algorithm>

#include "exec/executor/execute.h"

namespace dcsim::exec {
namespace {

/// What a task reads, or writes, as flat tensors of the collective's dtype, in their order: one
/// bucket, or one gradient a call. Buckets are kept as bytes.
std::vector<at::Tensor> Used(const ExecutorState& state, TaskId id, DType dtype, bool writes) {
  std::vector<at::Tensor> tensors;
  for (const BufferUse& use : state.schedule().uses(id)) {
    if (use.writes != writes || !state.buffers[use.buffer.index()].defined()) {
      continue;  // the gradient partition is no buffer here
    }
    const at::Tensor& tensor = state.buffers[use.buffer.index()];
    tensors.push_back(tensor.scalar_type() == at::kByte
                          ? tensor.view(ExecutorState::ToScalar(dtype))
                          : tensor.view(-1));
  }
  return tensors;
}

/// The gradient of call `i` among what Used gave.
at::Tensor GradientOf(const ExecutorState& state,
                      const std::vector<at::Tensor>& sources,
                      const Collective& collective,
                      std::size_t i) {
  const CollectiveCall& call = collective.calls[i];
  const std::int64_t numel = state.layout.place(call.param).numel;
  const bool apart = sources.size() > 1 || sources.front().numel() == numel;
  return apart ? sources[sources.size() > 1 ? i : 0]
               : sources.front().narrow(0, call.offset, numel);
}

/// A rank's shard of a gradient, which may end in its padding.
void CopyShard(const at::Tensor& gradient, std::int64_t begin, const at::Tensor& target) {
  const std::int64_t count = std::clamp<std::int64_t>(gradient.numel() - begin, 0, target.numel());
  if (count > 0) {
    target.narrow(0, 0, count).copy_(gradient.narrow(0, begin, count), /*non_blocking=*/true);
  }
  if (count < target.numel()) {
    target.narrow(0, count, target.numel() - count).zero_();
  }
}

void Keep(const at::Tensor& target, const at::Tensor& reduced, bool adds) {
  if (adds) {
    target.add_(reduced);
  } else {
    target.copy_(reduced, /*non_blocking=*/true);
  }
}

}  // namespace

void ExecuteFlatten(ExecutorState& state, TaskId id) {
  const Collective& collective = state.collective(state.work(id).subject);
  AllocateBuffers(state, id);
  const auto sources = Used(state, id, collective.dtype, false);
  const at::Tensor flat = Used(state, id, collective.dtype, true).front();
  std::int64_t place = 0;
  for (int rank = 0; rank < (state.layout.by_parameter() ? state.ranks() : 1); ++rank) {
    for (std::size_t i = 0; i < collective.calls.size(); ++i) {
      const at::Tensor gradient = GradientOf(state, sources, collective, i);
      const std::int64_t shard = state.layout.by_parameter()
                                     ? state.layout.place(collective.calls[i].param).shard
                                     : gradient.numel();
      CopyShard(gradient, rank * shard, flat.narrow(0, place, shard));
      place += shard;
    }
  }
}

void ExecuteUnflatten(ExecutorState& state, TaskId id) {
  const Collective& collective = state.collective(state.work(id).subject);
  const at::Tensor flat = Used(state, id, collective.dtype, false).front();
  const auto targets = Used(state, id, collective.dtype, true);
  for (std::size_t i = 0; i < collective.calls.size(); ++i) {
    const CollectiveCall& call = collective.calls[i];
    GradientOf(state, targets, collective, i)
        .copy_(flat.narrow(0, call.offset, call.elements), /*non_blocking=*/true);
  }
}

void ExecuteEagerStore(ExecutorState& state, TaskId id) {
  const Collective& collective = state.collective(state.work(id).subject);
  const auto sources = Used(state, id, collective.dtype, false);
  const bool adds = !ReducesOnce(state.schedule().options()) && state.micro_step > 0;
  std::int64_t received = 0;
  for (std::size_t i = 0; i < collective.calls.size(); ++i) {
    const ParamId param = collective.calls[i].param;
    const ParamPlace& place = state.layout.place(param);
    const at::Tensor& partition = state.flat[place.group].gradient_partition;
    if (state.layout.by_parameter()) {
      const at::Tensor& flat = sources.front();
      const std::int64_t own = flat.numel() / state.ranks();
      Keep(partition.narrow(0, place.partition, place.shard),
           flat.narrow(0, state.rank() * own + received, place.shard), adds);
      received += place.shard;
      continue;
    }
    const OwnedPart own = state.layout.owned(param, state.rank());
    if (own.begin < own.end) {
      Keep(partition.narrow(0, own.partition, own.end - own.begin),
           GradientOf(state, sources, collective, i).narrow(0, own.begin, own.end - own.begin),
           adds);
    }
  }
}

}  // namespace dcsim::exec
