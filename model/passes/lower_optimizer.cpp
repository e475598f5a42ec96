#include <algorithm>

#include "model/ir/optimizer_spec.h"
#include "model/passes/lower_state.h"
#include "model/passes/optimizer_tasks.h"

namespace dcsim {
namespace {

/// Squared norm of the own partitions, summed over ranks, in one float; the compute stream goes on
/// once it is there. The host reads nothing.
BufferId AddNorm(LowerState& state) {
  BufferId sum;
  for (std::size_t g = 0; g < state.flat.size(); ++g) {
    const FlatBuffers& flat = state.flat[g];
    if (flat.partition == 0) {
      continue;
    }
    TaskDraft draft = ComputeDraft(state, TaskKind::kGradientNorm, MemoryPattern::kNorm,
                                   state.PartitionBytes(g), g);
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

/// Whether the optimizer reads the gradient partition itself, which is one flat tensor of the dtype
/// of master weights then: DeepCompile's ZeRO-1, and eager ZeRO-2 with a dtype of its own for
/// gradients. Others flatten views. Of float32 parameters all are cast, as dc-run does.
bool ReadsPartition(const LowerState& state, std::size_t g) {
  const ScheduleOptions& options = state.plan.options;
  const DType own = state.layout.groups()[g].dtype;
  const DType kept = state.partition_dtype(g);
  return !HasResidentPartition(options) && kept == options.training.master &&
         own != DType::kFloat32 && (!state.eager() || kept != own);
}

/// Gradient partition -> a copy in the dtype of master weights; a partition of the step goes back
/// then.
BufferId AddCast(LowerState& state, const GroupPart& part) {
  const std::size_t g = part.group;
  FlatBuffers& flat = state.flat[g];
  if (ReadsPartition(state, g)) {
    return flat.gradient_partition;
  }
  const std::int64_t from = ElementBytes(state.partition_dtype(g));
  const std::int64_t to = ElementBytes(state.plan.options.training.master);
  const bool copies = from == to && state.layout.groups()[g].dtype != DType::kFloat32;
  const MemoryPattern cast = from > to ? MemoryPattern::kNarrow : MemoryPattern::kWiden;
  const BufferId gradient = AddStepBuffer(state, BufferClass::kTemporary, MasterBytes(state, part));
  const BufferId together = state.in_deepspeed() ? AddFlatGradients(state, part) : BufferId::None();
  TaskDraft draft =
      ComputeDraft(state, TaskKind::kCastGradients, copies ? MemoryPattern::kCopy : cast,
                   Bytes(part.elements * (from + to)), g);
  draft.Allocate(gradient);
  draft.Read(together.is_none() ? flat.gradient_partition : together);
  draft.Write(gradient);
  if (!together.is_none()) {
    draft.Free(together);
  }
  if (!HasResidentPartition(state.plan.options)) {
    draft.Free(flat.gradient_partition);
  }
  state.builder.Add(draft);
  return gradient;
}

void AddClip(LowerState& state, const GroupPart& part, BufferId gradient, BufferId norm) {
  TaskDraft draft = ComputeDraft(state, TaskKind::kClipGradients, MemoryPattern::kClip,
                                 MasterBytes(state, part) * 2, part.group);
  const BufferId factor = AddFloat(state);
  draft.Allocate(factor);
  draft.Read(norm);
  draft.Write(gradient);
  draft.Free(factor);
  state.builder.Add(draft);
}

void AddUpdate(LowerState& state, const GroupPart& part, BufferId gradient) {
  const FlatBuffers& flat = state.flat[part.group];
  const ScheduleOptions& options = state.plan.options;
  const OptimizerUpdate update = UpdateOf(options, part.elements);
  const Bytes tensor = MasterBytes(state, part);
  TaskDraft draft = ComputeDraft(state, TaskKind::kOptimizerStep, PatternOf(options, part.elements),
                                 tensor * update.accesses, part.group);
  draft.work.launches = static_cast<std::uint32_t>(update.launches);
  std::vector<BufferId> temporaries;
  for (std::size_t i = 0; i < update.temporaries; ++i) {
    temporaries.push_back(AddStepBuffer(state, BufferClass::kTemporary, tensor));
    draft.Allocate(temporaries.back());
  }
  draft.Read(gradient);
  for (const BufferId written : {flat.master, flat.first_moment, flat.second_moment}) {
    if (!written.is_none()) {
      draft.Write(written);
    }
  }
  for (const BufferId temporary : temporaries) {
    draft.Free(temporary);
  }
  state.builder.Add(draft);
}

/// Master weights -> the dtype of training: one kernel, or one a parameter where ZeRO-1 and 2 cut
/// each parameter's part out of weights that lie side by side. `over` is not needed any more.
void AddStoreParams(LowerState& state, const GroupPart& part, BufferId gradient, BufferId over) {
  const std::size_t g = part.group;
  const FlatBuffers& flat = state.flat[g];
  const bool offloads = state.plan.options.offload_parameters;
  const BufferId weights = offloads ? AddUpdatedBuffer(state, g) : flat.weights;
  const DType own = state.layout.groups()[g].dtype;
  const bool narrows = state.plan.options.training.master == DType::kFloat32;
  TaskDraft draft = ComputeDraft(
      state, TaskKind::kStoreParams, narrows ? MemoryPattern::kNarrow : MemoryPattern::kCopy,
      MasterBytes(state, part) + Bytes(part.elements * ElementBytes(own)), g);
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

/// The update of part of a group. The norm, if there is one, is not needed behind the last.
void AddPart(LowerState& state, const GroupPart& part, BufferId norm, bool last) {
  const BufferId gradient = AddCast(state, part);
  if (state.in_deepspeed()) {
    AddScaling(state, part, gradient);
  } else if (!norm.is_none() && state.plan.options.gradient_clipping) {
    AddClip(state, part, gradient, norm);
  }
  AddWaitForStates(state, part.group);
  AddUpdate(state, part, gradient);
  AddStoreParams(state, part, gradient, last ? norm : BufferId::None());
}

}  // namespace

void AddGradientPartition(LowerState& state) {
  for (std::size_t g = 0; g < state.flat.size(); ++g) {
    FlatBuffers& flat = state.flat[g];
    if (flat.partition == 0) {
      continue;
    }
    const Bytes bytes = state.PartitionBytes(g);
    flat.gradient_partition = AddStepBuffer(state, BufferClass::kGradientPartition, bytes);
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
  const bool clips = state.plan.options.gradient_clipping.has_value();
  BufferId norm;
  if (state.in_deepspeed()) {
    AddGradientChecks(state);
  } else if (clips || state.plan.options.compute_grad_norm) {
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
    const bool last =
        std::all_of(state.flat.begin() + static_cast<std::ptrdiff_t>(g) + 1, state.flat.end(),
                    [](const FlatBuffers& flat) { return flat.partition == 0; });
    const std::vector<GroupPart> parts = PartsOf(state, g);
    for (const GroupPart& part : parts) {
      AddPart(state, part, norm, last && &part == &parts.back());
    }
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
