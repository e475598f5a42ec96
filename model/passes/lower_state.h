#pragma once

#include <array>
#include <map>
#include <vector>

#include "model/graph/laid_out_profile.h"
#include "model/graph/param_layout.h"
#include "model/graph/step_facts.h"
#include "model/ir/graph.h"
#include "model/ir/optimizer_spec.h"
#include "model/ir/plan.h"
#include "model/ir/profile.h"
#include "model/ir/schedule.h"
#include "model/passes/fsdp_state.h"
#include "model/passes/lower.h"

namespace dcsim {

/// One reduce buffer of a dtype, and the last task that read it for a flush.
struct ReduceBuffer {
  BufferId buffer;
  std::int64_t capacity = 0;  // elements
  TaskId last_flush;          // None() when no flush used it in this backward
  bool waited = true;         // compute waits for last_flush already
};

/// Gradients of one dtype on their way to reduction (DeepCompile's DoubleBufferedReduceBucket).
struct ReduceBucket {
  DType dtype = DType::kBFloat16;
  std::vector<ReduceBuffer> buffers;  // none until the first gradient; then one or two
  std::size_t current = 0;
  std::int64_t offset = 0;  // elements filled
  std::vector<CollectiveCall> calls;
  std::vector<StorageId> retained_storages;  // gradients that stay alive until the flush
  std::vector<BufferId> retained_buffers;    // contiguous copies and accumulated gradients
};

/// A gradient as a flat, contiguous tensor that nobody else will change: in the storage that the
/// backward wrote, or in a buffer of its own.
struct TakenGradient {
  BufferId buffer;
  StorageId storage;  // that it lives in, or None() for a buffer of its own
};

/// Gradients of one dtype on their way to eager reduction (DeepSpeed's ipg bucket).
struct EagerBucket {
  DType dtype = DType::kBFloat16;
  std::vector<BufferId> buffers;  // that gradients are copied into, in turn; empty: they are not
  std::size_t current = 0;        // of buffers: that takes gradients
  std::int64_t offset = 0;        // elements filled
  std::vector<CollectiveCall> calls;
  std::vector<TakenGradient> references;  // instead of copies: one a call
  std::vector<TakenGradient> in_flight;   // overlap_comm: those of the reduction before
};

/// Flat tensors of one dtype (FlatGroup) as buffers.
struct FlatBuffers {
  BufferId weights;             // ZeRO-1, 2: whole; ZeRO-3: this rank's shards
  BufferId master;              // float32
  BufferId first_moment;        // None() where the optimizer keeps none
  BufferId second_moment;       // the same
  BufferId gradient_partition;  // ZeRO-2, 3: resident; ZeRO-1: of this step, None() outside
  std::int64_t partition = 0;   // elements of one rank
};

/// An optimizer state that moves between GPU and host.
struct OffloadedState {
  BufferId host;  // pinned; None() for a state that stays
  TaskId reload;  // that compute has not waited for
};

/// A parameter's shard that lives on the host.
struct OffloadedShard {
  BufferId host;    // pinned
  BufferId device;  // None() while it is on the host alone
  TaskId reload;    // that brought it to the device
  TaskId offload;   // of this step that wrote the host's
};

/// A saved activation that spends its time between forward and backward on the host.
struct OffloadedActivation {
  BufferId host;  // pinned; None() for one that stays
  TaskId offload;
  TaskId reload;
  BufferId device;  // after its return; None() before
};

/// Why a storage's memory is still needed, besides ops to come.
struct StorageHold {
  int sharers = 0;     // gradients that live in it
  int reductions = 0;  // those of them that are not reduced yet
  bool ops_done = false;
};

/// Everything that changes while one schedule is spelled out.
struct LowerState {
  /// `kept`: by dtype, elements of the reduce buffers that outlive steps.
  LowerState(const Plan& the_plan,
             const Graph& the_graph,
             const Profile* the_profile,
             const std::map<DType, std::vector<std::int64_t>>& kept);

  const Plan& plan;
  const Graph& graph;
  LaidOutProfile ops;
  std::map<DType, std::vector<std::int64_t>> kept_capacities;
  StepFacts facts;
  ParamLayout layout;
  ScheduleBuilder builder;

  // Residents.
  std::vector<FlatBuffers> flat;    // by group
  std::vector<BufferId> gathered;   // by param: its gathered buffer now, or None()
  std::vector<bool> is_persistent;  // by param
  std::vector<bool> is_valid;       // by param: gathered and still good
  std::vector<TaskId> gather_task;  // by param: gather that compute has not waited for

  BufferId barrier;                       // gathers by copy engines: what ranks reduce to meet
  std::vector<OffloadedState> offloaded;  // by StateIndex
  std::vector<OffloadedShard> shards;     // by param, with offload_parameters
  FsdpState fsdp;                         // with sharding fsdp2, instead of flat tensors
  Workspaces workspaces;                  // that no op has asked for yet

  // Of the micro-step.
  std::uint16_t micro_step = 0;
  std::vector<BufferId> buffer_of;  // by storage, or None()
  std::vector<StorageHold> holds;   // by storage
  std::vector<bool> is_used;        // by storage: some op reads or writes it
  std::vector<bool> is_held;        // by storage: of an output that the caller holds
  std::vector<BufferId> carried;    // by storage: buffer of such an output at the boundary
  std::vector<OffloadedActivation> activations;  // by storage
  std::vector<BufferId> held_now;     // outputs that the caller holds from this micro-step
  std::vector<BufferId> held_before;  // from the one before it
  std::map<DType, ReduceBucket> buckets;
  std::map<DType, EagerBucket> eager_buckets;
  /// By op of an eager ZeRO-3 step: modules whose hooks run ahead of it. Empty without hooks.
  std::vector<std::uint32_t> hooked_modules;
  std::vector<BufferId> accumulated;       // by param: gradient kept over micro-steps
  bool has_accumulated_partition = false;  // ZeRO-2, 3: a micro-step has stored into it

  bool first_micro_step() const { return micro_step == 0; }
  bool boundary() const { return micro_step + 1 == plan.options.gradient_accumulation_steps; }
  bool eager() const { return plan.options.gradient_buckets == GradientBuckets::kEager; }
  bool in_deepspeed() const {
    return plan.options.gradient_handling == GradientHandling::kDeepSpeed;
  }
  bool in_fsdp() const { return plan.options.sharding == Sharding::kFsdp2; }
  bool by_parameter() const { return CutByParameter(plan.options); }
  bool reads_peers() const { return plan.options.gather_engine == Engine::kCopyEngine; }
  std::uint8_t reduce_communicator() const {
    return static_cast<std::uint8_t>(plan.options.communicators - 1);
  }
  /// In which gradients of dtype `own` are reduced.
  DType reduction_dtype(DType own) const { return plan.options.training.reduction.value_or(own); }
  /// Of the elements in an eager bucket's buffer: ZeRO-3 casts as it copies gradients there.
  DType bucket_dtype(DType own) const {
    return plan.options.stage == 3 ? reduction_dtype(own) : own;
  }
  /// The dtype of a group's gradient partition, and its bytes.
  DType partition_dtype(std::size_t group) const {
    return AccumulationDType(plan.options.training, layout.groups()[group].dtype);
  }
  Bytes PartitionBytes(std::size_t group) const {
    return Bytes(layout.partition(group) * ElementBytes(partition_dtype(group)));
  }
  FlatBuffers& flat_of(ParamId id) { return flat[layout.place(id).group]; }

  TaskDraft Draft(TaskKind kind) const {
    TaskDraft draft;
    draft.kind = kind;
    draft.micro_step = micro_step;
    return draft;
  }
  TaskDraft Draft(TaskKind kind, StreamRole stream) const {
    TaskDraft draft = Draft(kind);
    draft.stream = stream;
    return draft;
  }
};

/// What each rank told of (Schedule::rank_works) owns of the gradients that calls reduce. Where the
/// flat tensor is cut anywhere a bucket may be one rank's alone; the first rank's parameters come
/// last, so that a step ends with its stores (lower_store.cpp).
std::vector<OwnedShare> OwnedShares(const LowerState& state,
                                    const std::vector<CollectiveCall>& calls);

/// How reduced gradients come into a rank's gradient partition: kernels for each part that it owns,
/// and what they move.
struct PartitionStore {
  MemoryPattern pattern = MemoryPattern::kCopy;
  std::int64_t bytes = 0;    // of an element
  std::size_t launches = 1;  // of a part
  bool widens = false;       // into a temporary first
};

/// Of reduced gradients of dtype `from`, added to what is there or not. DeepCompile's ZeRO-1 and 2
/// read one dtype and write the other in one kernel; where shards are reduced, and in eager ZeRO-2,
/// which always adds, gradients of another dtype are cast first.
PartitionStore StoreOf(const LowerState& state, std::size_t group, DType from, bool adds);

/// What a store of gradients that are cast first holds meanwhile: a tensor for each part, or, where
/// they are cast one after the other, the largest. Allocated and freed by the draft.
void AddWidened(LowerState& state,
                TaskDraft& draft,
                const std::vector<CollectiveCall>& calls,
                bool at_once);

/// Stores what each rank owns of a bucket's reduced gradients.
void SetStoreWork(TaskDraft& draft,
                  const std::vector<OwnedShare>& shares,
                  const PartitionStore& store,
                  std::uint32_t collective);

/// Work of `launches` kernels that move `moved` bytes.
Work MemoryWork(MemoryPattern pattern,
                Bytes moved,
                std::size_t launches,
                std::size_t events,
                std::uint32_t subject);

/// A kernel that reads elements of `from` bytes and writes ones of `to` bytes (lower_eager.cpp).
MemoryPattern CastPattern(std::int64_t from, std::int64_t to);

/// Buffers that outlive the step: weights, master weights, optimizer states, gradient partitions,
/// persistent gathered parameters, constants, inputs (lower_residents.cpp).
void AddResidents(LowerState& state);

/// A micro-step's inputs come on the compute stream, in front of all that it does there
/// (lower_host_copy.cpp). Small ones, such as tokens, take no longer than launches do.
void AddCopyInputs(LowerState& state);
/// A copy of `bytes` between GPU and pinned host memory, kOffload or kReload, on a side stream
/// (lower_host_copy.cpp).
TaskDraft HostCopyDraft(
    const LowerState& state, TaskKind kind, StreamRole stream, Bytes bytes, std::size_t subject);
/// The same behind what compute has to do so far: most of DeepSpeed's copy streams wait for the
/// compute stream before each copy.
TaskDraft HostCopyBehindCompute(
    const LowerState& state, TaskKind kind, StreamRole stream, Bytes bytes, std::size_t subject);
/// The host lets go of what a copy reads; the memory stays taken until the copy has ended.
void AddFreeBehindCopy(LowerState& state, BufferId buffer);

/// Optimizer states leave the GPU, come back, or the host waits for them (lower_offload.cpp).
void AddStateMove(LowerState& state, const StateMove& move);
/// Compute waits for the reloads of a group's states, before it reads them.
void AddWaitForStates(LowerState& state, std::size_t group);
/// The next step's first copies read what the optimizer has written.
void AddOffloadStreamWait(LowerState& state);

/// ZeRO-3's shards on the host (lower_shards.cpp): a shard comes to the device unless it is there,
/// and leaves it when its parameter is released; what the optimizer has written into `updated`
/// replaces a group's; the next step's first copies read that.
void AddHostShards(LowerState& state, std::size_t group);
void AddReloadShard(LowerState& state, ParamId param);
void AddOffloadShard(LowerState& state, ParamId param);
BufferId AddUpdatedBuffer(LowerState& state, std::size_t group);
void AddOffloadUpdated(LowerState& state, std::size_t group, BufferId updated);
void AddReloadStreamWait(LowerState& state);

/// Activations on the host (lower_activations.cpp): a value's storage leaves the device, comes
/// back, compute waits for it; what came back goes when the backward has ended.
void AddHostActivations(LowerState& state);
void AddActivationEvent(LowerState& state, const GraphEvent& event);
void AddFreeActivations(LowerState& state);

/// The stream waits for the event of a task of another one (lower_waits.cpp).
void AddWait(LowerState& state, StreamRole stream, TaskId task);
TaskDraft WaitDraft(const LowerState& state, StreamRole stream, TaskId task);
/// The stream waits for what compute has to do so far, by an event that is counted with the
/// stream's first task of the next step.
void AddWaitForCompute(LowerState& state, StreamRole stream);
/// The host waits until every stream has done what it was given.
void AddDeviceSynchronize(LowerState& state);

/// ZeRO-3: the gather of a group of parameters, without those that are valid already
/// (lower_gather.cpp).
void AddGather(LowerState& state, const GatherGroup& group);
/// The compute stream waits for the gather of a parameter that is about to be used.
void AddWaitForGather(LowerState& state, ParamId param);
/// A gathered parameter's last use in this graph has been issued.
void AddRelease(LowerState& state, ParamId param);

/// Elements of one rank's shard of a parameter under FSDP2, which cuts rows, padding included
/// (fsdp_tasks.cpp).
std::int64_t FsdpShardElements(const Graph& graph, ParamId param, int ranks);
/// FSDP2's groups (lower_fsdp_gather.cpp, lower_fsdp_reduce.cpp): shards are copied together and
/// gathered; compute waits, and copies parameters out; their memory goes back; gradients are copied
/// together and reduced.
void AddGroupGather(LowerState& state, const std::vector<ParamId>& params);
void AddGroupWait(LowerState& state, const std::vector<ParamId>& params, bool forward);
void AddGroupRelease(LowerState& state, const std::vector<ParamId>& params);
void AddGroupReduction(LowerState& state,
                       const Subgraph& subgraph,
                       const std::vector<ParamId>& params);
/// What an event of the plan asks of a group (lower_fsdp.cpp).
void AddGroupEvent(LowerState& state, const GraphEvent& event, const Subgraph& subgraph);
/// A micro-step begins, and its first gathers wait for compute; the optimizer's step has them wait
/// for the first one. The forward has returned: what the last group came from goes. A backward has
/// ended: compute waits for the reductions.
void AddForwardStart(LowerState& state);
void AddForwardEnd(LowerState& state);
void AddGroupsEnd(LowerState& state);
/// A rank's shards and their optimizer states; the update of the shards, behind which gradients go
/// (lower_fsdp_optimizer.cpp).
void AddParamShards(LowerState& state);
void AddShardsUpdate(LowerState& state);

/// A gradient has been computed: keep it (ZeRO-1 before the boundary) or put it into the reduce
/// bucket (lower_reduce.cpp).
void AddReduceGradient(LowerState& state, const GraphOutput& gradient);
/// Puts the gradients that were kept into the bucket, parameters in the order of the flat tensors.
void AddKeptGradients(LowerState& state);
/// A gradient as a flat, contiguous tensor, copied if it is none or shares its storage.
TakenGradient TakeGradient(LowerState& state, ParamId param, const Value& value);
/// Frees a gradient with the draft; one that lives in its storage, once no op needs that.
void FreeGradient(LowerState& state, const TakenGradient& gradient, TaskDraft& draft);
/// The same for each; leaves none.
void FreeGradients(LowerState& state, std::vector<TakenGradient>& gradients, TaskDraft& draft);

/// The same with eager buckets (lower_eager.cpp): a first gradient makes the buffer, one more
/// gradient goes into it, a backward ends.
void OpenEagerBucket(LowerState& state, ParamId param);
void AddEagerGradient(LowerState& state, ParamId param, const TakenGradient& gradient);
void AddEagerEnd(LowerState& state, bool releases_buffers);
/// Flush what is left, wait for it on the host; the buckets may go back.
void AddEndBackward(LowerState& state, bool releases_buckets);

/// Gradient norm, the optimizer on the partition, updated parameters to all ranks
/// (lower_optimizer.cpp).
void AddOptimizerStep(LowerState& state);

/// What DeepSpeed's host does around the graphs, with gradient_handling deepspeed; else nothing
/// (lower_host_calls.cpp). ZeRO-3's parameters are freed ahead of a step and partitioned behind its
/// last backward; a graph is entered; autograd hands gradients to their parameters; a micro-step
/// ends with a wait for the device.
void AddParameterCalls(LowerState& state);
void AddGraphCall(LowerState& state);
void AddGradientCalls(LowerState& state);
void AddThroughputTimer(LowerState& state);

/// By op, how many modules their graph enters with it for the first time; nothing for plans without
/// module_hooks. And the calls of their hooks, ahead of what the op at a place of its graph's order
/// gathers; none behind the last.
std::vector<std::uint32_t> FindHookedModules(const Plan& plan, const Graph& graph);
void AddModuleHooks(LowerState& state, const std::vector<OpId>& order, std::size_t at);

/// What DeepSpeed does with gradients ahead of its optimizer, with gradient_handling deepspeed
/// (lower_gradient_handling.cpp): the checks of all gradients; those of part of a group as one flat
/// tensor, where they are not, or None(); their scaling in place.
struct GroupPart;
void AddGradientChecks(LowerState& state);
BufferId AddFlatGradients(LowerState& state, const GroupPart& part);
void AddScaling(LowerState& state, const GroupPart& part, BufferId gradient);

/// ZeRO-1: the gradient partition of the boundary micro-step, zeroed (lower_optimizer.cpp).
void AddGradientPartition(LowerState& state);

/// One recorded op, and the storages that no op needs after it (lower_op.cpp).
void AddOp(LowerState& state, OpId id, const std::vector<StorageId>& dying);
/// The gradients that autograd hands to a backward graph: scalars that the host fills.
void AddTangents(LowerState& state, const Subgraph& subgraph);

/// Frees the buffer of a storage as a memory step of the draft (lower_op.cpp).
void FreeStorage(LowerState& state, StorageId storage, TaskDraft& draft);

}  // namespace dcsim
