#pragma once

#include <cstdint>
#include <vector>

#include "model/passes/lower_state.h"

namespace dcsim {

/// What the optimizer updates at a time: a group, or in DeepSpeed's ZeRO-3 a sub-group of it.
struct GroupPart {
  std::size_t group = 0;
  std::int64_t elements = 0;  // of one rank
  // With gradient_handling deepspeed alone:
  std::size_t params = 0;    // of which that rank owns a part, on the rank that has most of them
  std::int64_t largest = 1;  // elements of such a part
};

/// A group as it is updated, in order. DeepSpeed's ZeRO-3 closes a sub-group with the parameter by
/// which its rank has 1e9 elements (deepspeed/runtime/zero/stage3.py, _create_fp16_sub_groups); of
/// offloaded parameters a group is whole.
std::vector<GroupPart> PartsOf(const LowerState& state, std::size_t g);

/// Of part of a group: bytes of tensors of its size, in the dtype of master weights.
Bytes MasterBytes(const LowerState& state, const GroupPart& part);

/// A buffer of the step's end, not allocated yet.
BufferId AddStepBuffer(LowerState& state, BufferClass buffer_class, Bytes bytes);
BufferId AddFloat(LowerState& state);

/// Memory work of one kernel on the compute stream, on a group of flat tensors.
TaskDraft ComputeDraft(
    LowerState& state, TaskKind kind, MemoryPattern pattern, Bytes moved, std::size_t group);

/// On the reduce stream, behind what `streams` have to do so far; one event a wait, and one to wait
/// for it.
TaskId AddCollectiveTask(LowerState& state,
                         TaskKind kind,
                         const Collective& collective,
                         const std::vector<BufferUse>& uses,
                         const std::vector<StreamRole>& streams = {StreamRole::kCompute});

/// The sum of one float over all ranks.
Collective SumOfOneFloat(const LowerState& state);

/// How the optimizer's kernels go through tensors of so many elements. torch's fused kernels go by
/// four at a time, if they are a multiple of four (PyTorch 2.11,
/// aten/src/ATen/native/cuda/fused_adam_utils.cuh), DeepSpeed's one by one.
MemoryPattern PatternOf(const ScheduleOptions& options, std::int64_t elements);

/// Parameters of a group that are trained.
std::size_t CountTrainable(const LowerState& state, std::size_t g);

}  // namespace dcsim
