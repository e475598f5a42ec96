#include <algorithm>

#include "model/ir/optimizer_spec.h"
#include "model/passes/lower_state.h"
#include "model/passes/multi_tensor_launches.h"
#include "model/passes/optimizer_tasks.h"

// torch's optimizers over FSDP2's shards: each parameter's tensors are its own, and kernels go over
// lists of them.

namespace dcsim {
namespace {

BufferId AddResident(
    LowerState& state, BufferClass buffer_class, Bytes bytes, ParamId param, bool wanted = true) {
  Buffer buffer;
  buffer.bytes = bytes;
  buffer.buffer_class = buffer_class;
  buffer.subject = static_cast<std::uint32_t>(param.index());
  buffer.resident = true;
  return wanted && bytes > Bytes(0) ? state.builder.AddBuffer(buffer) : BufferId::None();
}

/// Trained parameters that have a gradient.
std::vector<ParamId> UpdatedParams(const LowerState& state) {
  std::vector<ParamId> params;
  for (const GroupGradient& gradient : state.fsdp.gradients) {
    params.insert(params.end(), gradient.params.begin(), gradient.params.end());
  }
  std::sort(params.begin(), params.end());
  return params;
}

std::int64_t ShardElements(const LowerState& state, ParamId param) {
  return FsdpShardElements(state.graph, param, state.plan.ranks);
}

/// Step counts, one for each parameter: foreach_add_.
void AddCountSteps(LowerState& state, const std::vector<ParamId>& params) {
  constexpr std::int64_t kFloat = 4;  // bytes
  const std::vector<std::int64_t> sizes(params.size(), 1);
  const auto count = static_cast<std::int64_t>(params.size());
  TaskDraft draft = ComputeDraft(state, TaskKind::kOptimizerStep, MemoryPattern::kAdd,
                                 Bytes(2 * kFloat * count), 0);
  draft.work.launches = static_cast<std::uint32_t>(MultiTensorLaunches(sizes, 1));
  for (const ParamId param : params) {
    draft.Write(state.fsdp.shards[param.index()].step_count);
  }
  state.builder.Add(draft);
}

/// The temporaries of an optimizer that works in passes: lists of tensors, or the largest one.
std::vector<Bytes> TemporariesOf(const LowerState& state,
                                 const std::vector<ParamId>& params,
                                 std::size_t count) {
  const std::int64_t element = ElementBytes(state.plan.options.training.states);
  std::vector<Bytes> temporaries;
  for (const ParamId param : params) {
    const Bytes bytes(ShardElements(state, param) * element);
    if (state.plan.options.optimizer == OptimizerKernels::kForLoop && !temporaries.empty()) {
      temporaries.front() = std::max(temporaries.front(), bytes);
    } else {
      temporaries.push_back(bytes);
    }
  }
  std::vector<Bytes> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.insert(all.end(), temporaries.begin(), temporaries.end());
  }
  return all;
}

void AddUpdate(LowerState& state, const std::vector<ParamId>& params) {
  const ScheduleOptions& options = state.plan.options;
  constexpr std::size_t kAdamLists = 4;  // parameters, gradients, two moments
  std::vector<std::int64_t> sizes;
  std::int64_t elements = 0;
  bool even = true;
  for (const ParamId param : params) {
    sizes.push_back(ShardElements(state, param));
    elements += sizes.back();
    even = even && PatternOf(options, sizes.back()) == PatternOf(options, 0);
  }
  const OptimizerUpdate update = UpdateOf(options, elements);
  const std::size_t lists = update.temporaries > 0 ? 2 : kAdamLists;
  const std::size_t passes = options.optimizer == OptimizerKernels::kForLoop
                                 ? params.size()
                                 : MultiTensorLaunches(sizes, lists);
  const Bytes tensor(elements * ElementBytes(options.training.master));
  TaskDraft draft = ComputeDraft(state, TaskKind::kOptimizerStep, PatternOf(options, even ? 0 : 1),
                                 tensor * update.accesses, 0);
  draft.work.launches = static_cast<std::uint32_t>(update.launches * passes);
  std::vector<BufferId> temporaries;
  for (const Bytes bytes : TemporariesOf(state, params, update.temporaries)) {
    temporaries.push_back(AddStepBuffer(state, BufferClass::kTemporary, bytes));
    draft.Allocate(temporaries.back());
  }
  for (const GroupGradient& gradient : state.fsdp.gradients) {
    draft.Read(gradient.buffer);
  }
  for (const ParamId param : params) {
    const FsdpShard& shard = state.fsdp.shards[param.index()];
    for (const BufferId written : {shard.weights, shard.first_moment, shard.second_moment}) {
      if (!written.is_none()) {
        draft.Write(written);
      }
    }
  }
  for (const BufferId temporary : temporaries) {
    draft.Free(temporary);
  }
  state.builder.Add(draft);
}

}  // namespace

void AddParamShards(LowerState& state) {
  const TrainingOptions& training = state.plan.options.training;
  auto& shards = state.fsdp.shards;
  shards.resize(state.graph.params.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::int64_t elements = ShardElements(state, ParamId(i));
    shards[i].weights = AddResident(state, BufferClass::kParameter,
                                    Bytes(elements * ElementBytes(training.master)), ParamId(i));
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (!state.graph.params[i].requires_grad) {
      continue;
    }
    const Bytes bytes(ShardElements(state, ParamId(i)) * ElementBytes(training.states));
    const auto add = [&](Bytes size, bool wanted) {
      return AddResident(state, BufferClass::kOptimizerState, size, ParamId(i), wanted);
    };
    constexpr Bytes kFloat(4);
    shards[i].step_count = add(kFloat, OptimizerSpecOf(training.algorithm).counts_steps);
    shards[i].first_moment = add(bytes, Keeps(training.algorithm, OptimizerTensor::kFirstMoment));
    shards[i].second_moment = add(bytes, Keeps(training.algorithm, OptimizerTensor::kSecondMoment));
  }
}

void AddShardsUpdate(LowerState& state) {
  const auto params = UpdatedParams(state);
  if (params.empty()) {
    return;
  }
  if (OptimizerSpecOf(state.plan.options.training.algorithm).counts_steps) {
    AddCountSteps(state, params);
  }
  AddUpdate(state, params);
  TaskDraft draft = state.Draft(TaskKind::kFree);
  for (const GroupGradient& gradient : state.fsdp.gradients) {
    draft.Free(gradient.buffer);
  }
  state.builder.Add(draft);
  state.fsdp.gradients.clear();
  AddWaitForCompute(state, StreamRole::kCopy);
  AddWaitForCompute(state, StreamRole::kGather);
}

}  // namespace dcsim
