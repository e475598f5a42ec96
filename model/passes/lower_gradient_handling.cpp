#include <algorithm>

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
// ZeRO-3 takes the norms of sub-groups of so many elements of a rank (stage3.py,
// _create_fp16_sub_groups), and the host waits for each: it copies a number to the GPU.
constexpr std::int64_t kSubGroup = 1'000'000'000;
// Scalars take it twice a call in a loop, the collective 28 calls; stacking the norms and dropping
// the gradients a third of a call for each parameter (docs/lab/deepspeed.md).
constexpr std::size_t kCallsOfScalar = 2;
constexpr std::size_t kCallsOfCollective = 28;
constexpr std::size_t kParamsOfCall = 3;

std::vector<ParamId> TrainedOf(const LowerState& state, std::size_t g) {
  std::vector<ParamId> trained;
  for (const ParamId id : state.layout.groups()[g].params) {
    if (state.graph.param(id).requires_grad) {
      trained.push_back(id);
    }
  }
  return trained;
}

/// Parameters of a group of which a rank owns a part: all where each is cut, else those in its part
/// of the flat tensor, on the rank that has most of them. The others wait for it.
std::size_t CountParts(const LowerState& state, std::size_t g) {
  return std::max<std::size_t>(1, state.layout.most_parts(TrainedOf(state, g)));
}

std::int64_t LargestPart(const LowerState& state, std::size_t g) {
  std::int64_t largest = 1;
  for (const ParamId id : state.layout.groups()[g].params) {
    const OwnedPart own = state.layout.owned(id, 0);
    largest =
        state.graph.param(id).requires_grad ? std::max(largest, own.end - own.begin) : largest;
  }
  return largest;
}

/// Kernels that read a group's gradient partition.
TaskDraft ReadingDraft(
    LowerState& state, std::size_t g, MemoryPattern pattern, Bytes moved, std::size_t launches) {
  TaskDraft draft = ComputeDraft(state, TaskKind::kGradientNorm, pattern, moved, g);
  draft.work.launches = static_cast<std::uint32_t>(launches);
  draft.Read(state.flat[g].gradient_partition);
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
BufferId AddOverflowCheck(LowerState& state, std::size_t g, BufferId found) {
  TaskDraft draft = ReadingDraft(state, g, MemoryPattern::kNorm, state.PartitionBytes(g) * 2,
                                 CountParts(state, g) * kOverflowKernels);
  draft.work.python.operators = static_cast<std::uint32_t>(CountParts(state, g) * kOverflowCalls);
  if (found.is_none()) {
    found = AddFloat(state);
    draft.Allocate(found);
  }
  draft.Write(found);
  state.builder.Add(draft);
  return found;
}

/// Norms of a group's gradients, each of a copy in float64.
BufferId AddNorms(LowerState& state, std::size_t g, BufferId sum) {
  const std::int64_t elements = state.flat[g].partition;
  const BufferId copy =
      AddStepBuffer(state, BufferClass::kTemporary, Bytes(LargestPart(state, g) * kFloat64));
  const std::size_t each = CountParts(state, g);
  TaskDraft widen = ReadingDraft(state, g, MemoryPattern::kWiden,
                                 state.PartitionBytes(g) + Bytes(elements * kFloat64), each);
  widen.work.python.operators = widen.work.launches;
  widen.Allocate(copy);
  widen.Write(copy);
  state.builder.Add(widen);
  TaskDraft norms = ComputeDraft(state, TaskKind::kGradientNorm, MemoryPattern::kNorm,
                                 Bytes(elements * kFloat64), g);
  norms.work.launches = static_cast<std::uint32_t>(each);
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

void AddScalars(
    LowerState& state, std::size_t g, BufferId sum, std::size_t launches, std::size_t calls) {
  const auto numbers = static_cast<std::int64_t>(CountParts(state, g));
  TaskDraft draft = ComputeDraft(state, TaskKind::kGradientNorm, MemoryPattern::kNorm,
                                 Bytes(numbers * kFloat64), g);
  draft.work.launches = static_cast<std::uint32_t>(launches);
  draft.work.python.operators = static_cast<std::uint32_t>(calls);
  draft.Write(sum);
  state.builder.Add(draft);
}

/// Norms of all groups' gradients, and the total norm, which the host reads.
void AddNorm(LowerState& state, const std::vector<std::size_t>& trained) {
  BufferId sum;
  for (const std::size_t g : trained) {
    sum = AddNorms(state, g, sum);
    AddScalars(state, g, sum, kGroupScalars, kGroupScalars);
  }
  AddScalars(state, trained.back(), sum, kTotalScalars, kTotalScalars);
  AddHostRead(state, sum);
}

std::size_t CountSubGroups(const LowerState& state, std::size_t g) {
  return static_cast<std::size_t>(DivideUp(state.flat[g].partition, kSubGroup));
}

/// The same of ZeRO-3, sub-group by sub-group.
void AddShardedNorm(LowerState& state, const std::vector<std::size_t>& trained) {
  BufferId sum;
  for (const std::size_t g : trained) {
    const std::size_t parts = CountParts(state, g);
    const std::size_t groups = CountSubGroups(state, g);
    sum = AddNorms(state, g, sum);
    AddScalars(
        state, g, sum, groups * kGroupScalars,
        groups * (kGroupScalars * kCallsOfScalar + kCallsOfCollective) + parts / kParamsOfCall);
    AddDeviceSynchronize(state);
  }
  const std::size_t parts = CountParts(state, trained.back());
  AddScalars(state, trained.back(), sum, kTotalScalars,
             kTotalScalars * kCallsOfScalar + parts / kParamsOfCall);
  AddHostRead(state, sum);
}

/// Groups with a partition, in their order.
std::vector<std::size_t> Trained(const LowerState& state) {
  std::vector<std::size_t> trained;
  for (std::size_t g = 0; g < state.flat.size(); ++g) {
    if (state.flat[g].partition > 0) {
      trained.push_back(g);
    }
  }
  return trained;
}

}  // namespace

void AddGradientChecks(LowerState& state) {
  const ScheduleOptions& options = state.plan.options;
  const std::vector<std::size_t> trained = Trained(state);
  if (trained.empty()) {
    return;
  }
  AddParameterCalls(state);
  if (options.stage != 3) {
    BufferId found;
    for (const std::size_t g : trained) {
      found = AddOverflowCheck(state, g, found);
    }
    AddHostRead(state, found);
  }
  if (options.stage == 3) {
    AddShardedNorm(state, trained);
  } else if (options.compute_grad_norm || options.gradient_clipping) {
    AddNorm(state, trained);
  }
}

BufferId AddFlatGradients(LowerState& state, std::size_t group) {
  const std::size_t parts = state.layout.owned(TrainedOf(state, group), 0).parts;
  if (parts < 2 || (state.plan.options.stage != 3 && !state.eager())) {
    return BufferId::None();
  }
  const Bytes bytes = state.PartitionBytes(group);
  const BufferId together = AddStepBuffer(state, BufferClass::kTemporary, bytes);
  TaskDraft draft =
      ComputeDraft(state, TaskKind::kCastGradients, MemoryPattern::kCopy, bytes * 2, group);
  draft.work.launches =
      static_cast<std::uint32_t>(DivideUp(static_cast<std::int64_t>(parts), kConcatenatedAtOnce));
  draft.Allocate(together);
  draft.Read(state.flat[group].gradient_partition);
  draft.Write(together);
  state.builder.Add(draft);
  return together;
}

void AddScaling(LowerState& state, std::size_t group, BufferId gradient) {
  const ScheduleOptions& options = state.plan.options;
  if (options.stage != 3 && !options.gradient_clipping) {
    return;  // nothing to scale by
  }
  TaskDraft draft = ComputeDraft(state, TaskKind::kClipGradients, MemoryPattern::kScale,
                                 MasterBytes(state, group) * 2, group);
  draft.Write(gradient);
  state.builder.Add(draft);
}

}  // namespace dcsim
