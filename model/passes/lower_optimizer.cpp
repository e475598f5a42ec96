#include <algorithm>

#include "model/passes/lower_state.h"

namespace dcsim {
namespace {

constexpr std::int64_t kMasterBytes = 4;  // float32

/// What one AdamW update of a partition reads and writes per element, in bytes, its kernels, and
/// the float32 temporaries of the partition's size that it holds.
struct OptimizerTraffic {
  MemoryPattern pattern;
  std::int64_t bytes_per_element;
  std::size_t launches;
  std::size_t temporaries;
};

/// Fused: by four elements at a time, if they are a multiple of four (PyTorch 2.11,
/// aten/src/ATen/native/cuda/fused_adam_utils.cuh); master, gradient, both moments read, all but
/// the gradient written: 16 + 12 bytes. Foreach and for-loop (torch.optim.AdamW without fused):
/// weight decay 8, exp_avg lerp 12, exp_avg_sq mul 8 and addcmul 12, sqrt 8, division 8, eps 8,
/// addcdiv 16 bytes an element.
OptimizerTraffic TrafficOf(OptimizerKernels kernels, std::int64_t elements) {
  constexpr std::int64_t kVector = 4;  // elements, fused
  const MemoryPattern fused =
      elements % kVector == 0 ? MemoryPattern::kAdamW : MemoryPattern::kAdamWUneven;
  constexpr std::int64_t kPassesBytes = 8 + 12 + 8 + 12 + 8 + 8 + 8 + 16;
  switch (kernels) {
    case OptimizerKernels::kFused:
      return {fused, 28, 1, 0};
    case OptimizerKernels::kForeach:
      return {MemoryPattern::kPasses, kPassesBytes, 8, 1};
    case OptimizerKernels::kForLoop:
      return {MemoryPattern::kPasses, kPassesBytes, 8, 2};
  }
  return {fused, 28, 1, 0};
}

BufferId AddBuffer(LowerState& state, BufferClass buffer_class, Bytes bytes) {
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

/// On the reduce stream, behind what `streams` have to do so far; one event a wait, and one to wait
/// for it.
TaskId AddCollectiveTask(LowerState& state,
                         TaskKind kind,
                         const Collective& collective,
                         const std::vector<BufferUse>& uses,
                         const std::vector<StreamRole>& streams = {StreamRole::kCompute}) {
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

/// The sum of one float over all ranks.
Collective SumOfOneFloat(const LowerState& state) {
  Collective collective;
  collective.kind = CollectiveKind::kAllReduce;
  collective.dtype = DType::kFloat32;
  collective.communicator = state.reduce_communicator();
  collective.ranks = state.plan.ranks;
  collective.calls.push_back({ParamId::None(), 1, 0});
  return collective;
}

BufferId AddFloat(LowerState& state) {
  return AddBuffer(state, BufferClass::kTemporary, Bytes(4));
}

/// Squared norm of the own partitions, summed over ranks, in one float; the compute stream goes on
/// once it is there. The host reads nothing.
BufferId AddNorm(LowerState& state) {
  BufferId sum;
  for (std::size_t g = 0; g < state.flat.size(); ++g) {
    const FlatBuffers& flat = state.flat[g];
    if (flat.partition == 0) {
      continue;
    }
    const Bytes moved(flat.partition * ElementBytes(state.layout.groups()[g].dtype));
    TaskDraft draft = ComputeDraft(state, TaskKind::kGradientNorm, MemoryPattern::kNorm, moved, g);
    const BufferId norm = AddFloat(state);
    const BufferId square = AddFloat(state);
    draft.Allocate(norm);
    draft.Allocate(square);
    draft.Read(flat.gradient_partition);
    if (sum.is_none()) {
      sum = square;
    } else {
      draft.Free(square);
    }
    draft.Write(sum);
    draft.Free(norm);
    state.builder.Add(draft);
  }
  if (sum.is_none()) {
    return sum;  // nothing is trained
  }
  const TaskId reduced =
      AddCollectiveTask(state, TaskKind::kReduceNorm, SumOfOneFloat(state), {{sum, true}});
  AddWait(state, StreamRole::kCompute, reduced);
  return sum;
}

/// Gradient partition -> float32; a partition of the step goes back then.
BufferId AddCast(LowerState& state, std::size_t g) {
  FlatBuffers& flat = state.flat[g];
  const std::int64_t element_bytes = ElementBytes(state.layout.groups()[g].dtype);
  const BufferId gradient =
      AddBuffer(state, BufferClass::kTemporary, Bytes(flat.partition * kMasterBytes));
  TaskDraft draft = ComputeDraft(state, TaskKind::kCastGradients, MemoryPattern::kWiden,
                                 Bytes(flat.partition * (element_bytes + kMasterBytes)), g);
  draft.Allocate(gradient);
  draft.Read(flat.gradient_partition);
  draft.Write(gradient);
  if (!HasResidentPartition(state.plan.options)) {
    draft.Free(flat.gradient_partition);
  }
  state.builder.Add(draft);
  return gradient;
}

void AddClip(LowerState& state, std::size_t g, BufferId gradient, BufferId norm) {
  TaskDraft draft = ComputeDraft(state, TaskKind::kClipGradients, MemoryPattern::kClip,
                                 Bytes(2 * state.flat[g].partition * kMasterBytes), g);
  const BufferId factor = AddFloat(state);
  draft.Allocate(factor);
  draft.Read(norm);
  draft.Write(gradient);
  draft.Free(factor);
  state.builder.Add(draft);
}

void AddAdam(LowerState& state, std::size_t g, BufferId gradient) {
  const FlatBuffers& flat = state.flat[g];
  const OptimizerTraffic traffic = TrafficOf(state.plan.options.optimizer, flat.partition);
  TaskDraft draft = ComputeDraft(state, TaskKind::kOptimizerStep, traffic.pattern,
                                 Bytes(flat.partition * traffic.bytes_per_element), g);
  draft.work.launches = static_cast<std::uint32_t>(traffic.launches);
  std::vector<BufferId> temporaries;
  for (std::size_t i = 0; i < traffic.temporaries; ++i) {
    temporaries.push_back(
        AddBuffer(state, BufferClass::kTemporary, Bytes(flat.partition * kMasterBytes)));
    draft.Allocate(temporaries.back());
  }
  draft.Read(gradient);
  draft.Write(flat.master);
  draft.Write(flat.first_moment);
  draft.Write(flat.second_moment);
  for (const BufferId temporary : temporaries) {
    draft.Free(temporary);
  }
  state.builder.Add(draft);
}

std::size_t CountTrainable(const LowerState& state, std::size_t g) {
  const auto& params = state.layout.groups()[g].params;
  return static_cast<std::size_t>(std::ranges::count_if(
      params, [&](ParamId id) { return state.graph.param(id).requires_grad; }));
}

/// Master weights -> the dtype of training: one kernel, or one a parameter where ZeRO-1 and 2 cut
/// each parameter's part out of weights that lie side by side. `over` is not needed any more.
void AddStoreParams(LowerState& state, std::size_t g, BufferId gradient, BufferId over) {
  const FlatBuffers& flat = state.flat[g];
  const bool offloads = state.plan.options.offload_parameters;
  const BufferId weights = offloads ? AddUpdatedBuffer(state, g) : flat.weights;
  const std::int64_t element_bytes = ElementBytes(state.layout.groups()[g].dtype);
  TaskDraft draft = ComputeDraft(state, TaskKind::kStoreParams, MemoryPattern::kNarrow,
                                 Bytes(flat.partition * (element_bytes + kMasterBytes)), g);
  if (offloads) {
    draft.Allocate(weights);
  } else if (state.by_parameter() && state.plan.options.stage != 3) {
    draft.work.launches = static_cast<std::uint32_t>(CountTrainable(state, g));
  }
  draft.Read(flat.master);
  draft.Write(weights);
  draft.Free(gradient);
  if (!over.is_none()) {
    draft.Free(over);
  }
  state.builder.Add(draft);
  if (offloads) {
    AddOffloadUpdated(state, g, weights);
  }
}

/// ZeRO-1 and 2: one in-place all-gather over the flat weights; with partitions by parameter, one
/// call a parameter in one group.
TaskId AddGatherUpdated(LowerState& state, std::size_t g) {
  const FlatGroup& group = state.layout.groups()[g];
  Collective collective;
  collective.kind = CollectiveKind::kAllGather;
  collective.dtype = group.dtype;
  collective.ranks = state.plan.ranks;
  collective.in_place = true;
  if (state.by_parameter()) {
    for (const ParamId id : group.params) {
      if (state.graph.param(id).requires_grad) {
        collective.calls.push_back(
            {id, GatheredElements(state.graph.numel(id), state.plan.ranks), 0});
      }
    }
  } else {
    collective.calls.push_back({ParamId::None(), state.flat[g].partition * state.plan.ranks, 0});
  }
  return AddCollectiveTask(state, TaskKind::kGatherUpdated, collective,
                           {{state.flat[g].weights, true}});
}

/// No rank goes on before all have come: a reduction of one element, after what compute and gather
/// streams have to do so far.
TaskId AddBarrier(LowerState& state) {
  return AddCollectiveTask(state, TaskKind::kBarrier, SumOfOneFloat(state), {{state.barrier, true}},
                           {StreamRole::kCompute, StreamRole::kGather});
}

/// The next step's first gathers read the weights stored above, and write buffers that this step's
/// ops read: DeepCompile's gather stream waits for the compute stream before each of them. Where
/// gathers read peers' memory, it waits for their updates too.
void AddGatherStreamWait(LowerState& state) {
  if (state.reads_peers()) {
    AddWait(state, StreamRole::kGather, AddBarrier(state));
  } else {
    AddWaitForCompute(state, StreamRole::kGather);
  }
}

}  // namespace

void AddGradientPartition(LowerState& state) {
  for (std::size_t g = 0; g < state.flat.size(); ++g) {
    FlatBuffers& flat = state.flat[g];
    if (flat.partition == 0) {
      continue;
    }
    const Bytes bytes(flat.partition * ElementBytes(state.layout.groups()[g].dtype));
    flat.gradient_partition = AddBuffer(state, BufferClass::kGradientPartition, bytes);
    TaskDraft draft =
        ComputeDraft(state, TaskKind::kClearGradients, MemoryPattern::kFill, bytes, g);
    draft.Allocate(flat.gradient_partition);
    draft.Write(flat.gradient_partition);
    state.builder.Add(draft);
  }
}

void AddOptimizerStep(LowerState& state) {
  const bool lacks_gradient =
      std::any_of(state.flat.begin(), state.flat.end(), [](const FlatBuffers& flat) {
        return flat.partition > 0 && flat.gradient_partition.is_none();
      });
  if (lacks_gradient) {
    AddGradientPartition(state);  // ZeRO-1 without a backward graph: the gradient is zero
  }
  BufferId norm;  // none without clipping
  if (state.plan.options.gradient_clipping) {
    norm = AddNorm(state);
  }
  if (state.reads_peers()) {
    const TaskId barrier = AddBarrier(state);  // until peers have read what is updated now
    AddWait(state, StreamRole::kCompute, barrier);
  }
  TaskId gather;
  for (std::size_t g = 0; g < state.flat.size(); ++g) {
    if (state.flat[g].partition == 0) {
      continue;
    }
    const BufferId gradient = AddCast(state, g);
    if (!norm.is_none()) {
      AddClip(state, g, gradient, norm);
    }
    AddWaitForStates(state, g);
    AddAdam(state, g, gradient);
    const bool last =
        std::all_of(state.flat.begin() + static_cast<std::ptrdiff_t>(g) + 1, state.flat.end(),
                    [](const FlatBuffers& flat) { return flat.partition == 0; });
    AddStoreParams(state, g, gradient, last ? norm : BufferId::None());
    if (state.plan.options.stage != 3) {
      gather = AddGatherUpdated(state, g);
    }
  }
  if (!gather.is_none()) {
    AddWait(state, StreamRole::kCompute, gather);
  }
  if (state.plan.options.stage == 3) {
    AddGatherStreamWait(state);
  }
  AddOffloadStreamWait(state);
  AddReloadStreamWait(state);
}

}  // namespace dcsim
