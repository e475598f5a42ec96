#include <algorithm>
#include <iterator>

#include "model/passes/optimizer_tasks.h"

// What DeepSpeed 0.19.8 launches between the backward and the optimizer
// (deepspeed/runtime/zero/stage_1_and_2.py, stage3.py), as traces of whole steps show it: checks
// and norms parameter by parameter, in float64, with results that the host reads. Kernels of one
// kind are one task.

namespace dcsim {
namespace {

constexpr std::int64_t kFloat64 = 8;  // bytes
// Of one parameter's part: amax and amin, each found finite by four kernels; and, not, and the sum
// of what was found.
constexpr std::size_t kOverflowKernels = 13;
// They and the turn of the loop take as long as three calls besides their launches: 115 to 150 us a
// parameter in four jobs (docs/lab/deepspeed.md).
constexpr std::size_t kOverflowCalls = 3;
// Scalars behind the norms: of a group, from its parameters' norms to its own; of all, to the total
// norm and whether it is finite.
constexpr std::size_t kGroupScalars = 11;
constexpr std::size_t kTotalScalars = 22;
// ZeRO-3 takes the norms sub-group by sub-group, and the host waits for each: it copies a number to
// the GPU. Scalars take it twice a call in a loop, the collective 28 calls; stacking the norms and
// dropping the gradients a third of a call for each parameter (docs/lab/deepspeed.md).
constexpr std::size_t kCallsOfScalar = 2;
constexpr std::size_t kCallsOfCollective = 28;
constexpr std::size_t kParamsOfCall = 3;

Bytes PartitionBytes(const LowerState& state, const GroupPart& part) {
  return Bytes(part.elements * ElementBytes(state.partition_dtype(part.group)));
}

/// Kernels that read the gradient partition of a group.
TaskDraft ReadingDraft(LowerState& state,
                       const GroupPart& part,
                       MemoryPattern pattern,
                       Bytes moved,
                       std::size_t launches) {
  TaskDraft draft = ComputeDraft(state, TaskKind::kGradientNorm, pattern, moved, part.group);
  draft.work.launches = static_cast<std::uint32_t>(launches);
  draft.Read(state.flat[part.group].gradient_partition);
  return draft;
}

/// What the ranks find becomes one number, which the host reads.
void AddHostRead(LowerState& state, BufferId found) {
  const TaskId reduced =
      AddCollectiveTask(state, TaskKind::kReduceNorm, SumOfOneFloat(state), {{found, true}});
  AddWait(state, StreamRole::kCompute, reduced);
  TaskDraft read = state.Draft(TaskKind::kHostSynchronize);
  read.waits.push_back(reduced);
  read.Free(found);
  state.builder.Add(read);
}

/// ZeRO-1 and 2: whether each gradient is finite, by its largest and smallest element.
BufferId AddOverflowCheck(LowerState& state, const GroupPart& part, BufferId found) {
  TaskDraft draft = ReadingDraft(state, part, MemoryPattern::kNorm, PartitionBytes(state, part) * 2,
                                 part.params * kOverflowKernels);
  draft.work.python.operators = static_cast<std::uint32_t>(part.params * kOverflowCalls);
  if (found.is_none()) {
    found = AddFloat(state);
    draft.Allocate(found);
  }
  draft.Write(found);
  state.builder.Add(draft);
  return found;
}

/// Norms of gradients, each of a copy in float64.
BufferId AddNorms(LowerState& state, const GroupPart& part, BufferId sum) {
  const Bytes wide(part.elements * kFloat64);
  const BufferId copy =
      AddStepBuffer(state, BufferClass::kTemporary, Bytes(part.largest * kFloat64));
  TaskDraft widen = ReadingDraft(state, part, MemoryPattern::kWiden,
                                 PartitionBytes(state, part) + wide, part.params);
  widen.work.python.operators = widen.work.launches;
  widen.Allocate(copy);
  widen.Write(copy);
  state.builder.Add(widen);
  TaskDraft norms =
      ComputeDraft(state, TaskKind::kGradientNorm, MemoryPattern::kNorm, wide, part.group);
  norms.work.launches = static_cast<std::uint32_t>(part.params);
  norms.work.python.operators = norms.work.launches;
  norms.Read(copy);
  if (sum.is_none()) {
    sum = AddFloat(state);
    norms.Allocate(sum);
  }
  norms.Write(sum);
  norms.Free(copy);
  state.builder.Add(norms);
  return sum;
}

void AddScalars(LowerState& state,
                const GroupPart& part,
                BufferId sum,
                std::size_t launches,
                std::size_t calls) {
  TaskDraft draft =
      ComputeDraft(state, TaskKind::kGradientNorm, MemoryPattern::kNorm,
                   Bytes(static_cast<std::int64_t>(part.params) * kFloat64), part.group);
  draft.work.launches = static_cast<std::uint32_t>(launches);
  draft.work.python.operators = static_cast<std::uint32_t>(calls);
  draft.Write(sum);
  state.builder.Add(draft);
}

/// Norms of all gradients, and the total norm, which the host reads.
void AddTotalNorm(LowerState& state, const std::vector<GroupPart>& trained) {
  const bool sharded = state.plan.options.stage == 3;
  const auto calls = [sharded](std::size_t scalars, std::size_t params) {
    return sharded ? scalars * kCallsOfScalar + params / kParamsOfCall : scalars;
  };
  BufferId sum;
  std::size_t params = 0;
  for (const GroupPart& part : trained) {
    sum = AddNorms(state, part, sum);
    AddScalars(state, part, sum, kGroupScalars,
               calls(kGroupScalars, part.params) + (sharded ? kCallsOfCollective : 0));
    if (sharded) {
      AddDeviceSynchronize(state);
    }
    params += part.params;
  }
  AddScalars(state, trained.back(), sum, kTotalScalars, calls(kTotalScalars, params));
  AddHostRead(state, sum);
}

/// What is trained, in order.
std::vector<GroupPart> Trained(const LowerState& state) {
  std::vector<GroupPart> trained;
  for (std::size_t g = 0; g < state.flat.size(); ++g) {
    if (state.flat[g].partition > 0) {
      std::ranges::copy(PartsOf(state, g), std::back_inserter(trained));
    }
  }
  return trained;
}

}  // namespace

void AddGradientChecks(LowerState& state) {
  const ScheduleOptions& options = state.plan.options;
  const std::vector<GroupPart> trained = Trained(state);
  if (trained.empty()) {
    return;
  }
  AddParameterCalls(state);
  if (options.stage != 3) {
    BufferId found;
    for (const GroupPart& part : trained) {
      found = AddOverflowCheck(state, part, found);
    }
    AddHostRead(state, found);
  }
  if (options.stage == 3 || options.compute_grad_norm || options.gradient_clipping) {
    AddTotalNorm(state, trained);
  }
}

BufferId AddFlatGradients(LowerState& state, const GroupPart& part) {
  if (part.params < 2 || (state.plan.options.stage != 3 && !state.eager())) {
    return BufferId::None();
  }
  const Bytes bytes = PartitionBytes(state, part);
  const BufferId together = AddStepBuffer(state, BufferClass::kTemporary, bytes);
  TaskDraft draft =
      ComputeDraft(state, TaskKind::kCastGradients, MemoryPattern::kCopy, bytes * 2, part.group);
  draft.work.launches = static_cast<std::uint32_t>(
      DivideUp(static_cast<std::int64_t>(part.params), kConcatenatedAtOnce));
  draft.Allocate(together);
  draft.Read(state.flat[part.group].gradient_partition);
  draft.Write(together);
  state.builder.Add(draft);
  return together;
}

void AddScaling(LowerState& state, const GroupPart& part, BufferId gradient) {
  const ScheduleOptions& options = state.plan.options;
  if (options.stage != 3 && !options.gradient_clipping) {
    return;  // nothing to scale by
  }
  TaskDraft draft = ComputeDraft(state, TaskKind::kClipGradients, MemoryPattern::kScale,
                                 MasterBytes(state, part) * 2, part.group);
  draft.Write(gradient);
  state.builder.Add(draft);
}

}  // namespace dcsim
