#pragma once

#include <cstdint>
#include <vector>

#include "model/passes/lower_state.h"

namespace dcsim {

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

/// Of a group: bytes of its tensors of the partition's size, in the dtype of master weights.
Bytes MasterBytes(const LowerState& state, std::size_t g);

/// How the optimizer's kernels go through tensors of so many elements. torch's fused kernels go by
/// four at a time, if they are a multiple of four (PyTorch 2.11,
/// aten/src/ATen/native/cuda/fused_adam_utils.cuh), DeepSpeed's one by one.
MemoryPattern PatternOf(const ScheduleOptions& options, std::int64_t elements);

/// Parameters of a group that are trained.
std::size_t CountTrainable(const LowerState& state, std::size_t g);

}  // namespace dcsim
