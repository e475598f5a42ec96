#include <algorithm>
#include <numeric>

#include <ATen/ops/_chunk_cat.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/split_with_sizes_copy.h>

#include "exec/executor/execute.h"
#include "model/base/error.h"

// The calls of FSDP2 of torch 2.11 (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py). A
// group's shards lie one behind the other, and of all ranks those one behind the other.

namespace dcsim::exec {
namespace {

/// Elements that a rank has of each parameter of a group.
std::vector<std::int64_t> ShardSizes(const ExecutorState& state, const Collective& group) {
  std::vector<std::int64_t> sizes;
  for (const CollectiveCall& call : group.calls) {
    sizes.push_back(call.elements / state.ranks());
  }
  return sizes;
}

/// Elements that a rank has of a group.
std::int64_t OwnElements(const ExecutorState& state, const Collective& group) {
  const auto sizes = ShardSizes(state, group);
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

/// Of a tensor of a group's own elements: each parameter's part.
std::vector<at::Tensor> PartsOf(const ExecutorState& state,
                                const Collective& group,
                                const at::Tensor& tensor) {
  return tensor.split_with_sizes(ShardSizes(state, group));
}

const Collective& GroupOf(const ExecutorState& state, TaskId id) {
  return state.collective(state.work(id).subject);
}

/// Memory for the buffer, as elements of a dtype.
at::Tensor& Make(ExecutorState& state, BufferId id, DType dtype) {
  const std::int64_t bytes = state.schedule().buffer(id).bytes.count();
  at::Tensor& made = state.buffers[id.index()];
  made = at::empty({bytes / ElementBytes(dtype)}, state.options(dtype));
  return made;
}

/// What a task copies from: shards, or a buffer that holds them.
std::vector<at::Tensor> SourceParts(const ExecutorState& state,
                                    TaskId id,
                                    const Collective& group) {
  const BufferId read = UsedBuffer(state, id, false);
  if (state.schedule().buffer(read).buffer_class != BufferClass::kParameter) {
    return PartsOf(state, group, state.buffers[read.index()]);
  }
  std::vector<at::Tensor> shards;
  for (const CollectiveCall& call : group.calls) {
    shards.push_back(state.shards[call.param.index()].weights);
  }
  return shards;
}

/// The buffer of a whole parameter that the task writes.
BufferId WholeBuffer(const ExecutorState& state, TaskId id, ParamId param) {
  const auto uses = state.schedule().uses(id);
  const auto found = std::find_if(uses.begin(), uses.end(), [&](const BufferUse& use) {
    return use.writes && state.schedule().buffer(use.buffer).subject == param.index();
  });
  DCSIM_CHECK(found != uses.end()) << "task " << id.index() << " writes no such parameter";
  return found->buffer;
}

void DefineParam(ExecutorState& state, ParamId param, const at::Tensor& whole) {
  const ValueId id = state.graph().param(param).value;
  const Value& value = state.graph().value(id);
  state.gathered[param.index()] = whole;
  state.frame[id.index()] = whole.narrow(0, 0, value.numel()).view(value.shape);
}

/// A parameter's gradient in a buffer. It may be a view that the graph makes later, of something in
/// the same storage.
at::Tensor GradientIn(const ExecutorState& state, BufferId buffer, ParamId param) {
  if (state.buffers[buffer.index()].defined()) {
    return state.buffers[buffer.index()];
  }
  const ValueId id = state.gradient_of[param.index()];
  const Value& gradient = state.graph().value(id);
  for (const ValueId other : state.values_in[gradient.storage.index()]) {
    const at::Tensor& base = state.frame[other.index()];
    if (base.defined()) {
      const std::int64_t start = base.storage_offset() - state.graph().value(other).offset;
      return at::as_strided(base, gradient.shape, gradient.strides, start + gradient.offset);
    }
  }
  DCSIM_CHECK(false) << "the gradient of " << state.graph().param(param).name << " is not there";
  return {};
}

/// A group's gradients, updated in this step: what the optimizer reads.
struct Updated {
  std::vector<ParamId> params;
  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> first_moments;
  std::vector<at::Tensor> second_moments;
  std::vector<at::Tensor> step_counts;
};

Updated UpdatedBy(const ExecutorState& state, TaskId id) {
  Updated updated;
  for (const BufferUse& use : state.schedule().uses(id)) {
    if (use.writes) {
      continue;
    }
    const Collective& group = state.collective(state.reduced_group[use.buffer.index()]);
    const auto parts = PartsOf(state, group, state.buffers[use.buffer.index()]);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const ParamId param = group.calls[i].param;
      const ShardTensors& shard = state.shards[param.index()];
      updated.params.push_back(param);
      updated.gradients.push_back(parts[i]);
      updated.weights.push_back(shard.weights);
      updated.first_moments.push_back(shard.first_moment);
      updated.second_moments.push_back(shard.second_moment);
      updated.step_counts.push_back(shard.step_count);
    }
  }
  return updated;
}

/// The steps of all parameters, counted by a task that writes them and nothing else.
bool CountsSteps(const ExecutorState& state, TaskId id) {
  const auto uses = state.schedule().uses(id);
  return std::all_of(uses.begin(), uses.end(), [](const BufferUse& use) { return use.writes; });
}

void CountSteps(const ExecutorState& state, TaskId id) {
  std::vector<at::Tensor> counts;
  for (const BufferUse& use : state.schedule().uses(id)) {
    counts.push_back(state.buffers[use.buffer.index()]);
  }
  at::_foreach_add_(counts, 1);
}

}  // namespace

void BuildShards(ExecutorState& state) {
  state.shards.resize(state.graph().params.size());
  for (const BufferId id : state.schedule().residents()) {
    const Buffer& buffer = state.schedule().buffer(id);
    const bool is_weights = buffer.buffer_class == BufferClass::kParameter;
    if (!is_weights && buffer.buffer_class != BufferClass::kOptimizerState) {
      continue;
    }
    ShardTensors& shard = state.shards[buffer.subject];
    // In the order in which a schedule declares them (AddParamShards).
    at::Tensor& made = is_weights                      ? shard.weights
                       : !shard.step_count.defined()   ? shard.step_count
                       : !shard.first_moment.defined() ? shard.first_moment
                                                       : shard.second_moment;
    made = Make(state, id, DType::kFloat32);
  }
}

void ExecuteGatherCopyIn(ExecutorState& state, TaskId id) {
  const Collective& group = GroupOf(state, id);
  const auto sources = SourceParts(state, id, group);
  const std::int64_t own = OwnElements(state, group);
  const at::Tensor& made = Make(state, UsedBuffer(state, id, true), group.dtype);
  const std::int64_t begin = made.numel() == own ? 0 : state.rank() * own;
  at::_foreach_copy_(PartsOf(state, group, made.narrow(0, begin, own)), sources);
}

void ExecuteGroupGather(ExecutorState& state, TaskId id) {
  const Collective& group = GroupOf(state, id);
  const at::Tensor& output = state.buffers[UsedBuffer(state, id, true).index()];
  const std::int64_t own = OwnElements(state, group);
  state.communicator(group).AllGather(output.narrow(0, state.rank() * own, own), output);
}

void ExecuteGatherCopyOut(ExecutorState& state, TaskId id) {
  const Collective& group = GroupOf(state, id);
  std::vector<at::Tensor> wholes;
  for (const CollectiveCall& call : group.calls) {
    const at::Tensor& whole = Make(state, WholeBuffer(state, id, call.param), group.dtype);
    wholes.push_back(whole.view({state.ranks(), -1}));
    DefineParam(state, call.param, whole);
  }
  if (state.ranks() == 1) {
    wholes.front().view(-1).copy_(SourceParts(state, id, group).front());
    return;
  }
  const at::Tensor& output = state.buffers[UsedBuffer(state, id, false).index()];
  at::split_with_sizes_copy_out(wholes, output.view({state.ranks(), -1}), ShardSizes(state, group),
                                1);
}

void ExecuteReduceCopyIn(ExecutorState& state, TaskId id) {
  const Collective& group = GroupOf(state, id);
  std::vector<at::Tensor> gradients;
  for (const BufferUse& use : state.schedule().uses(id)) {
    if (!use.writes) {
      const ParamId param = group.calls[gradients.size()].param;
      gradients.push_back(GradientIn(state, use.buffer, param));
    }
  }
  at::Tensor input =
      Make(state, UsedBuffer(state, id, true), group.dtype).view({state.ranks(), -1});
  at::_chunk_cat_out(input, gradients, 0, state.ranks());
}

void ExecuteGroupReduce(ExecutorState& state, TaskId id) {
  const Collective& group = GroupOf(state, id);
  const at::Tensor& input = state.buffers[UsedBuffer(state, id, false).index()];
  const BufferId target = UsedBuffer(state, id, true);
  const at::Tensor& reduced = Make(state, target, group.dtype);
  state.reduced_group[target.index()] = state.work(id).subject;
  if (state.ranks() == 1) {
    reduced.copy_(input);
    return;
  }
  state.communicator(group).ReduceScatterMean(input, reduced);
}

void ExecuteCastReduced(ExecutorState& state, TaskId id) {
  const BufferId target = UsedBuffer(state, id, true);
  state.reduced_group[target.index()] = state.work(id).subject;
  Make(state, target, DType::kFloat32).copy_(state.buffers[UsedBuffer(state, id, false).index()]);
}

void ExecuteAddReduced(ExecutorState& state, TaskId id) {
  const Collective& group = GroupOf(state, id);
  const at::Tensor& kept = state.buffers[UsedBuffer(state, id, true).index()];
  const at::Tensor& reduced = state.buffers[UsedBuffer(state, id, false).index()];
  const auto sources = PartsOf(state, group, reduced);
  const auto targets = PartsOf(state, group, kept);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    targets[i].add_(sources[i]);
  }
}

void ExecuteShardsUpdate(ExecutorState& state, TaskId id) {
  if (CountsSteps(state, id)) {
    return CountSteps(state, id);
  }
  const Updated updated = UpdatedBy(state, id);
  for (std::size_t i = 0; state.keep_gradients && i < updated.params.size(); ++i) {
    state.kept_gradients[updated.params[i].index()] = updated.gradients[i].clone();
  }
  const AdamW& options = state.setup.optimizer;
  if (state.schedule().options().optimizer == OptimizerKernels::kFused) {
    at::_fused_adamw_(updated.weights, updated.gradients, updated.first_moments,
                      updated.second_moments, {}, updated.step_counts, options.learning_rate,
                      options.beta1, options.beta2, options.weight_decay, options.epsilon,
                      /*amsgrad=*/false, /*maximize=*/false);
    return;
  }
  for (std::size_t i = 0; i < updated.params.size(); ++i) {
    AdamWInPasses({updated.weights[i], updated.gradients[i], updated.first_moments[i],
                   updated.second_moments[i]},
                  options, state.updates, /*in_place=*/false);
  }
}

}  // namespace dcsim::exec
