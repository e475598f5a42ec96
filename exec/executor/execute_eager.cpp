#include <algorithm>

#include <ATen/ops/cat.h>

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

/// The flat tensor of a bucket as it is filled, part by part, from its start.
class FlatTensor {
 public:
  FlatTensor(const at::Tensor& flat, Flatten way) : flat_(flat), way_(way) {}

  /// `length` elements of a gradient from `begin` on; what is beyond its end is 0.
  void Append(const at::Tensor& gradient, std::int64_t begin, std::int64_t length) {
    const std::int64_t count = std::clamp<std::int64_t>(gradient.numel() - begin, 0, length);
    if (count > 0) {
      parts_.push_back(gradient.narrow(0, begin, count));
      pending_ += count;
    }
    if (count < length || way_ == Flatten::kCopy) {
      Fill();
    }
    if (count < length) {
      flat_.narrow(0, filled_, length - count).zero_();
      filled_ += length - count;
    }
  }

  /// Behind the last part.
  void Fill() {
    if (parts_.empty()) {
      return;
    }
    at::Tensor target = flat_.narrow(0, filled_, pending_);
    if (parts_.size() == 1) {
      target.copy_(parts_.front(), /*non_blocking=*/true);
    } else {
      at::cat_out(target, parts_);
    }
    filled_ += pending_;
    pending_ = 0;
    parts_.clear();
  }

 private:
  const at::Tensor& flat_;
  Flatten way_;
  std::vector<at::Tensor> parts_;  // those that wait to be written together
  std::int64_t pending_ = 0;       // their elements
  std::int64_t filled_ = 0;
};

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
  const at::Tensor target = Used(state, id, collective.dtype, true).front();
  FlatTensor flat(target, state.schedule().options().flatten);
  for (int rank = 0; rank < (state.layout.by_parameter() ? state.ranks() : 1); ++rank) {
    for (std::size_t i = 0; i < collective.calls.size(); ++i) {
      const at::Tensor gradient = GradientOf(state, sources, collective, i);
      const std::int64_t shard = state.layout.by_parameter()
                                     ? state.layout.place(collective.calls[i].param).shard
                                     : gradient.numel();
      flat.Append(gradient, rank * shard, shard);
    }
  }
  flat.Fill();
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
