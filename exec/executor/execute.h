#pragma once

#include "exec/executor/executor_state.h"

namespace dcsim::exec {

// One function a group of task kinds. Each is called with the task's stream current; waits, events
// and frees are the caller's (step_executor.cpp).

/// Weights, optimizer states, constants, inputs (build_state.cpp).
void BuildResidents(ExecutorState& state);
/// Contents of the inputs of one micro-step on the host, pinned when a GPU will read them.
std::vector<at::Tensor> MakeInputs(const ExecutorState& state, int step, int micro_step);
/// New inputs, an empty frame; the caller's outputs of the micro-step before are set aside.
void StartMicroStep(ExecutorState& state, int micro_step);

/// kCompute, and the tangents that a backward starts from (execute_compute.cpp).
void ExecuteOp(ExecutorState& state, TaskId id);
void ExecuteTangents(ExecutorState& state, TaskId id);
/// Forgets every tensor of a storage.
void DropStorage(ExecutorState& state, StorageId storage);

/// The memory of a buffer that is freed may be reused once the streams it names have passed this
/// point (execute_gather.cpp).
void RecordStreams(const ExecutorState& state, const Buffer& buffer, const at::Tensor& tensor);

/// The first buffer that a task reads or writes, as declared (execute_reduce.cpp).
BufferId UsedBuffer(const ExecutorState& state, TaskId id, bool writes);

/// kAllGather, the casts of shards before it, and the end of a gathered parameter
/// (execute_gather.cpp).
void ExecuteCastShard(ExecutorState& state, TaskId id);
void ExecuteGather(ExecutorState& state, TaskId id);
void DropGathered(ExecutorState& state, const Buffer& buffer);

/// Buckets: allocation, copies into them, division, collectives, storing (execute_reduce.cpp).
void AllocateBuffers(ExecutorState& state, TaskId id);
void ExecuteAccumulate(ExecutorState& state, TaskId id);
void ExecuteMakeContiguous(ExecutorState& state, TaskId id);
void ExecuteReduceGradCopy(ExecutorState& state, TaskId id);
void ExecutePreDivide(ExecutorState& state, TaskId id);
void ExecuteReduce(ExecutorState& state, TaskId id);
void ExecuteStoreReduced(ExecutorState& state, TaskId id);

/// Eager buckets: gradients into a flat tensor and back, reduced ones into the partition
/// (execute_eager.cpp).
void ExecuteFlatten(ExecutorState& state, TaskId id);
void ExecuteUnflatten(ExecutorState& state, TaskId id);
void ExecuteEagerStore(ExecutorState& state, TaskId id);

/// Pinned host memory; kOffload, kReload, and the end of an optimizer state on the device
/// (execute_offload.cpp).
void AllocatePinned(ExecutorState& state);
void ExecuteOffload(ExecutorState& state, TaskId id);
void ExecuteReload(ExecutorState& state, TaskId id);
void DropState(ExecutorState& state, const Buffer& buffer);

/// The part of a parameter that `shard` is, or holds padding behind (build_state.cpp); FSDP2.
OwnedElements OwnedShard(const ExecutorState& state, ParamId id, const at::Tensor& shard);

/// FSDP2: shards, what is gathered of a group of parameters, its gradients' reduction, and the
/// optimizer step (execute_fsdp.cpp).
void BuildShards(ExecutorState& state);
void ExecuteGatherCopyIn(ExecutorState& state, TaskId id);
void ExecuteGroupGather(ExecutorState& state, TaskId id);
void ExecuteGatherCopyOut(ExecutorState& state, TaskId id);
void ExecuteReduceCopyIn(ExecutorState& state, TaskId id);
void ExecuteGroupReduce(ExecutorState& state, TaskId id);
void ExecuteCastReduced(ExecutorState& state, TaskId id);
void ExecuteAddReduced(ExecutorState& state, TaskId id);
void ExecuteShardsUpdate(ExecutorState& state, TaskId id);

/// What an optimizer updates: equally many elements.
struct AdamWTensors {
  at::Tensor weights;
  at::Tensor gradient;
  at::Tensor first_moment;
  at::Tensor second_moment;
};

/// AdamW in separate passes, as torch.optim.AdamW does without fused kernels. The multi-tensor
/// passes divide in place; tensor by tensor the quotient is a second temporary.
void AdamWInPasses(const AdamWTensors& tensors, const AdamW& options, int updates, bool in_place);

/// The optimizer step (execute_optimizer.cpp).
void ExecuteClearPartition(ExecutorState& state, TaskId id);
void ExecuteGradientNorm(ExecutorState& state, TaskId id);
void ExecuteReduceNorm(ExecutorState& state, TaskId id);
void ExecuteCast(ExecutorState& state, TaskId id);
void ExecuteClip(ExecutorState& state, TaskId id);
void ExecuteOptimizer(ExecutorState& state, TaskId id);
void ExecuteStoreParams(ExecutorState& state, TaskId id);
void ExecuteGatherUpdated(ExecutorState& state, TaskId id);
void ExecuteBarrier(ExecutorState& state, TaskId id);

}  // namespace dcsim::exec
