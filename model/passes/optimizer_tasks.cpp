#include "model/passes/optimizer_tasks.h"

#include <algorithm>

#include "model/ir/optimizer_spec.h"

namespace dcsim {

BufferId AddStepBuffer(LowerState& state, BufferClass buffer_class, Bytes bytes) {
  Buffer buffer;
  buffer.bytes = bytes;
  buffer.buffer_class = buffer_class;
  return state.builder.AddBuffer(buffer);
}

TaskDraft ComputeDraft(
    LowerState& state, TaskKind kind, MemoryPattern pattern, Bytes moved, std::size_t group) {
  TaskDraft draft = state.Draft(kind, StreamRole::kCompute);
  draft.work = MemoryWork(pattern, moved, 1, 0, static_cast<std::uint32_t>(group));
  return draft;
}

TaskId AddCollectiveTask(LowerState& state,
                         TaskKind kind,
                         const Collective& collective,
                         const std::vector<BufferUse>& uses,
                         const std::vector<StreamRole>& streams) {
  TaskDraft draft = state.Draft(kind, StreamRole::kReduce);
  draft.work.kind = Work::Kind::kCollective;
  draft.work.events = static_cast<std::uint16_t>(streams.size() + 1);
  draft.work.subject = static_cast<std::uint32_t>(state.builder.AddCollective(collective).index());
  for (const StreamRole stream : streams) {
    if (const TaskId last = state.builder.last(stream); !last.is_none()) {
      draft.waits.push_back(last);
    }
  }
  draft.uses = uses;
  return state.builder.Add(draft);
}

Collective SumOfOneFloat(const LowerState& state) {
  Collective collective;
  collective.kind = CollectiveKind::kAllReduce;
  collective.dtype = DType::kFloat32;
  collective.communicator = state.reduce_communicator();
  collective.ranks = state.plan.ranks;
  collective.calls.push_back({ParamId::None(), 1, 0});
  return collective;
}

MemoryPattern PatternOf(const ScheduleOptions& options, std::int64_t elements) {
  constexpr std::int64_t kVector = 4;  // elements
  const OptimizerAlgorithm algorithm = options.training.algorithm;
  const bool adam =
      algorithm == OptimizerAlgorithm::kAdamW || algorithm == OptimizerAlgorithm::kAdam;
  const bool even = elements % kVector == 0;
  if (RunsDeepSpeedKernel(options)) {
    return MemoryPattern::kFusedUpdateUneven;
  }
  if (options.optimizer != OptimizerKernels::kFused) {
    return MemoryPattern::kPasses;
  }
  if (!adam || options.training.master != DType::kFloat32) {
    return even ? MemoryPattern::kFusedUpdate : MemoryPattern::kFusedUpdateUneven;
  }
  return even ? MemoryPattern::kAdamW : MemoryPattern::kAdamWUneven;
}

BufferId AddFloat(LowerState& state) {
  return AddStepBuffer(state, BufferClass::kTemporary, Bytes(4));
}

std::vector<GroupPart> PartsOf(const LowerState& state, std::size_t g) {
  if (!state.in_deepspeed()) {
    return {{.group = g, .elements = state.flat[g].partition}};
  }
  constexpr std::int64_t kSubGroup = 1'000'000'000;
  const bool cuts = state.plan.options.stage == 3 && !state.plan.options.offload_parameters;
  std::vector<GroupPart> parts = {{.group = g}};
  std::vector<ParamId> trained;
  for (const ParamId id : state.layout.groups()[g].params) {
    if (!state.graph.param(id).requires_grad) {
      continue;
    }
    if (cuts && parts.back().elements >= kSubGroup) {
      parts.push_back({.group = g});
    }
    const OwnedPart own = state.layout.owned(id, 0);
    parts.back().largest = std::max(parts.back().largest, own.end - own.begin);
    parts.back().elements += cuts ? state.layout.place(id).shard : 0;
    ++parts.back().params;
    trained.push_back(id);
  }
  if (!cuts) {
    parts.front().elements = state.flat[g].partition;
    parts.front().params = state.layout.most_parts(trained);
  }
  return parts;
}

Bytes MasterBytes(const LowerState& state, const GroupPart& part) {
  return Bytes(part.elements * ElementBytes(state.plan.options.training.master));
}

std::size_t CountTrainable(const LowerState& state, std::size_t g) {
  const auto& params = state.layout.groups()[g].params;
  return static_cast<std::size_t>(std::ranges::count_if(
      params, [&](ParamId id) { return state.graph.param(id).requires_grad; }));
}

}  // namespace dcsim
