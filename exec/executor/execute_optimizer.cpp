#include <algorithm>
#include <cmath>

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>

#include "exec/executor/execute.h"

namespace dcsim::exec {
namespace {

FlatTensors& FlatOf(ExecutorState& state, TaskId id) {
  return state.flat[state.work(id).subject];
}

}  // namespace

void AdamWInPasses(const AdamWTensors& tensors, const AdamW& options, int updates, bool in_place) {
  const double correction1 = 1 - std::pow(options.beta1, updates);
  const double correction2 = 1 - std::pow(options.beta2, updates);
  tensors.weights.mul_(1 - options.learning_rate * options.weight_decay);
  tensors.first_moment.lerp_(tensors.gradient, 1 - options.beta1);
  tensors.second_moment.mul_(options.beta2)
      .addcmul_(tensors.gradient, tensors.gradient, 1 - options.beta2);
  const at::Tensor root = tensors.second_moment.sqrt();
  const at::Tensor denominator =
      in_place ? root.div_(std::sqrt(correction2)) : root.div(std::sqrt(correction2));
  denominator.add_(options.epsilon);
  tensors.weights.addcdiv_(tensors.first_moment, denominator, -options.learning_rate / correction1);
}

void ExecuteClearPartition(ExecutorState& state, TaskId id) {
  FlatTensors& flat = FlatOf(state, id);
  const std::size_t group = state.work(id).subject;
  flat.gradient_partition =
      at::zeros({state.layout.partition(group)}, state.options(state.layout.groups()[group].dtype));
}

void ExecuteGradientNorm(ExecutorState& state, TaskId id) {
  const FlatTensors& flat = FlatOf(state, id);
  const at::Tensor norm =
      at::linalg_vector_norm(flat.gradient_partition, 2, std::nullopt, false, at::kFloat);
  const at::Tensor square = norm.mul(norm);
  at::Tensor& sum = state.buffers[UsedBuffer(state, id, true).index()];
  sum = sum.defined() ? sum.add_(square) : square;
}

void ExecuteReduceNorm(ExecutorState& state, TaskId id) {
  const at::Tensor& sum = state.buffers[UsedBuffer(state, id, true).index()];
  state.communicator(state.collective(state.work(id).subject)).AllReduce(sum.view(-1));
}

void ExecuteBarrier(ExecutorState& state, TaskId id) {
  state.communicator(state.collective(state.work(id).subject)).AllReduce(state.barrier);
}

void ExecuteCast(ExecutorState& state, TaskId id) {
  FlatTensors& flat = FlatOf(state, id);
  flat.gradient = flat.gradient_partition.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  if (!HasResidentPartition(state.schedule().options())) {
    flat.gradient_partition.reset();
  }
  if (state.keep_gradients) {
    state.kept_gradients[state.work(id).subject] = flat.gradient.clone();
  }
}

void ExecuteClip(ExecutorState& state, TaskId id) {
  const double allowed = *state.schedule().options().gradient_clipping;
  const auto uses = state.schedule().uses(id);
  const auto read = std::ranges::find_if(uses, [](const BufferUse& use) { return !use.writes; });
  const at::Tensor& norm = state.buffers[read->buffer.index()];
  const at::Tensor factor = norm.sqrt().add_(1e-6).reciprocal_().mul_(allowed).clamp_max_(1);
  FlatOf(state, id).gradient.mul_(factor);
}

void ExecuteOptimizer(ExecutorState& state, TaskId id) {
  FlatTensors& flat = FlatOf(state, id);
  const AdamW& options = state.setup.optimizer;
  const OptimizerKernels kernels = state.schedule().options().optimizer;
  if (kernels != OptimizerKernels::kFused) {
    AdamWInPasses({flat.master, flat.gradient, flat.first_moment, flat.second_moment}, options,
                  state.updates, kernels == OptimizerKernels::kForeach);
    return;
  }
  flat.step_count.add_(1);
  at::_fused_adamw_({flat.master}, {flat.gradient}, {flat.first_moment}, {flat.second_moment}, {},
                    {flat.step_count}, options.learning_rate, options.beta1, options.beta2,
                    options.weight_decay, options.epsilon, /*amsgrad=*/false, /*maximize=*/false);
}

void ExecuteStoreParams(ExecutorState& state, TaskId id) {
  FlatTensors& flat = FlatOf(state, id);
  const std::size_t group = state.work(id).subject;
  const std::int64_t partition = state.layout.partition(group);
  if (state.offloads_params()) {
    const BufferId updated = UsedBuffer(state, id, true);
    state.buffers[updated.index()] =
        flat.master.to(flat.weights.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
    flat.gradient.reset();
    return;
  }
  flat.gradient.reset();
  if (state.layout.stage() == 3) {
    flat.weights.narrow(0, 0, partition).copy_(flat.master);
    return;
  }
  if (!state.layout.by_parameter()) {
    flat.weights.narrow(0, state.rank() * partition, partition).copy_(flat.master);
    return;
  }
  for (const ParamId param : state.layout.groups()[group].params) {
    const ParamPlace& place = state.layout.place(param);
    if (place.trainable) {
      flat.weights.narrow(0, place.weights + state.rank() * place.shard, place.shard)
          .copy_(flat.master.narrow(0, place.partition, place.shard));
    }
  }
}

void ExecuteGatherUpdated(ExecutorState& state, TaskId id) {
  const Collective& collective = state.collective(state.work(id).subject);
  Communicator& communicator = state.communicator(collective);
  communicator.StartGroup();
  for (const CollectiveCall& call : collective.calls) {
    if (call.param.is_none()) {
      FlatTensors* flat = nullptr;
      for (std::size_t g = 0; g < state.flat.size(); ++g) {
        flat = state.layout.groups()[g].dtype == collective.dtype ? &state.flat[g] : flat;
      }
      const std::int64_t partition = call.elements / state.ranks();
      communicator.AllGather(flat->weights.narrow(0, state.rank() * partition, partition),
                             flat->weights.narrow(0, 0, call.elements));
      continue;
    }
    const ParamPlace& place = state.layout.place(call.param);
    const at::Tensor& weights = state.flat[place.group].weights;
    communicator.AllGather(
        weights.narrow(0, place.weights + state.rank() * place.shard, place.shard),
        weights.narrow(0, place.weights, call.elements));
  }
  communicator.EndGroup();
}

}  // namespace dcsim::exec
