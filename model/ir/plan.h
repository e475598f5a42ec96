#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/ids.h"
#include "model/base/units.h"
#include "model/ir/backend.h"
#include "model/ir/dtype.h"

namespace dcsim {

/// How gradients of ZeRO-1 and ZeRO-2 are reduced; ZeRO-3 always reduce-scatters.
enum class ReduceCollective : std::uint8_t { kAllReduce, kReduceScatter };

/// What one flush of the reduce bucket launches: one collective a parameter inside one NCCL group,
/// as DeepCompile does, or a single collective over the bucket.
enum class FlushCollectives : std::uint8_t { kPerParameter, kOnePerBucket };

/// When the memory of a released parameter may be used again: once the GPU has passed its last use
/// (record_stream, as DeepSpeed does), or at once in host order, because the gather stream waits
/// for the compute stream before every gather (event_ordered; peaks do not depend on timing).
enum class ReleaseMode : std::uint8_t { kEventOrdered, kRecordStream };

/// What makes new weights of the gradients; OptimizerSpec says what each keeps and moves
/// (model/ir/optimizer_spec.h).
enum class OptimizerAlgorithm : std::uint8_t { kAdamW, kAdam, kSgd, kSgdMomentum, kLion };
std::string_view OptimizerAlgorithmName(OptimizerAlgorithm algorithm);

/// The update as one fused kernel, as multi-tensor passes, tensor by tensor, or as DeepSpeed's own
/// fused kernel (FusedAdam, FusedLion).
enum class OptimizerKernels : std::uint8_t { kFused, kForeach, kForLoop, kDeepSpeedFused };

/// Who moves the bytes of a collective: NCCL's kernels, or the GPU's copy engines, which read the
/// other ranks' shards through peer memory and take no multiprocessors.
enum class Engine : std::uint8_t { kNccl, kCopyEngine };
std::span<const std::string_view> EngineNames();

/// PyTorch's caching allocator with its default segments or with expandable ones.
enum class AllocatorMode : std::uint8_t { kDefault, kExpandableSegments };

/// Where the host waits for the whole device, as DeepCompile's flags of these names have it.
struct DeviceSynchronization {
  bool before_allgather = false;
  bool after_allgather = false;
  bool before_reduce = false;
  bool after_reduce = false;

  bool operator==(const DeviceSynchronization&) const = default;
};

/// How long the reduce buffers live, and ZeRO-1's gradient partition: until the last backward graph
/// of a step that reduces has ended (the partition: until the optimizer has cast it); as DeepSpeed
/// PR #8036 has it, which lets only the graph that runs last give the buffers back, and only if it
/// reduces; or for good, grown buffers included, as before that change.
enum class BufferLifetime : std::uint8_t { kStep, kPr8036, kPermanent };

/// When ZeRO-2 and 3 reduce: in each micro-step; or once a step, whole gradients being kept until
/// then (DeepSpeed PR #7992, coalesce_grad_reduction). ZeRO-1 reduces once either way, in the last
/// backward or behind it, unless each micro-step is asked for: its gradient partition then outlives
/// steps, as in DeepCompile of DeepSpeed 0.17.1 (before PR #7366).
enum class GradientReduction : std::uint8_t { kEachBackward, kCoalesced, kEachMicroStep };

/// How gradients are collected and reduced: in DeepCompile's buckets, or in DeepSpeed's eager ones,
/// with one collective a bucket over a flat copy where ranks own parts of it.
enum class GradientBuckets : std::uint8_t { kDeepCompile, kEager };

/// How an eager bucket becomes one flat tensor: concatenated, as DeepSpeed does, or with a copy for
/// each part of it (a gradient; in ZeRO-3 a gradient's part for each rank).
enum class Flatten : std::uint8_t { kConcatenate, kCopy };

/// What stands between the backward and the optimizer. kLean: what an optimizer needs, as dc-run
/// does it; kDeepSpeed: what DeepSpeed 0.19.8 launches (model/passes/lower_gradient_handling.cpp).
enum class GradientHandling : std::uint8_t { kLean, kDeepSpeed };

/// ZeRO-3: what the host does around modules. kDeepSpeed: the hooks by which eager DeepSpeed
/// fetches and releases the parameters of each module, forward and backward.
enum class ModuleHooks : std::uint8_t { kNone, kDeepSpeed };

/// Whose way of cutting parameters over ranks: ZeRO's, or PyTorch's FSDP2, whose groups of
/// parameters are gathered and reduced as one tensor each, and whose shards are what the optimizer
/// updates (docs/design/policies.md).
enum class Sharding : std::uint8_t { kZero, kFsdp2 };

/// How often offloaded optimizer states make their way to the host and back: once a step, out in
/// its first micro-step and back in the last; or in each micro-step, as DeepCompile's graphs do.
enum class OffloadPeriod : std::uint8_t { kStep, kMicroStep };

/// What is trained, however it is scheduled: a search changes none of it.
struct TrainingOptions {
  OptimizerAlgorithm algorithm = OptimizerAlgorithm::kAdamW;
  DType master = DType::kFloat32;     // of master weights: float32 or bfloat16
  DType states = DType::kFloat32;     // of moments: the same
  std::optional<DType> accumulation;  // of gradient partitions; nothing: the parameters' own
  std::optional<DType> reduction;     // in which gradients are reduced; nothing: their own

  bool operator==(const TrainingOptions&) const = default;
};

std::span<const std::string_view> BackendNames();

/// Decisions that are the same in what a person asks (PlanSpec) and in what is executed (Plan).
struct ScheduleOptions {
  int stage = 3;                     // ZeRO stage: 1, 2 or 3
  Backend backend = Backend::kAten;  // whose graph of the workload runs
  Sharding sharding = Sharding::kZero;
  int gradient_accumulation_steps = 1;       // micro-steps of one optimizer step
  std::int64_t reduce_bucket = 500'000'000;  // elements of one reduce buffer
  bool double_buffer = true;                 // two reduce buffers, used in turn
  ReduceCollective reduce_collective = ReduceCollective::kAllReduce;
  FlushCollectives flush_collectives = FlushCollectives::kPerParameter;
  GradientBuckets gradient_buckets = GradientBuckets::kDeepCompile;
  bool contiguous_gradients = true;  // eager: gradients are copied into a buffer as they come
  bool overlap_comm = false;  // eager, stages 1 and 2: reductions on their own stream, while the
                              // backward fills a second buffer
  Flatten flatten = Flatten::kConcatenate;
  BufferLifetime buffer_lifetime = BufferLifetime::kStep;
  GradientReduction gradient_reduction = GradientReduction::kEachBackward;
  int communicators = 1;                 // 1: gathers and reductions queue in one; 2: one each
  Engine gather_engine = Engine::kNccl;  // of ZeRO-3's gathers
  bool fuse_casts = false;     // ZeRO-3: parameters are gathered in the dtype that they are cast to
  bool align_tensors = false;  // flat tensors and DeepCompile's buckets hold all that can begin at
                               // multiples of 16 bytes there (model/graph/sharding.h)
  DeviceSynchronization synchronize;
  ReleaseMode release = ReleaseMode::kEventOrdered;
  std::optional<double> gradient_clipping;  // largest norm of the whole gradient
  bool compute_grad_norm = false;           // though nothing clips
  GradientHandling gradient_handling = GradientHandling::kLean;
  ModuleHooks module_hooks = ModuleHooks::kNone;
  bool parameter_alignment = false;  // stages 1 and 2: each parameter of the flat tensor
                                     // begins at a multiple of 16 bytes, behind padding
  TrainingOptions training;
  OptimizerKernels optimizer = OptimizerKernels::kFused;
  AllocatorMode allocator = AllocatorMode::kDefault;
  OffloadPeriod offload_period = OffloadPeriod::kStep;
  bool offload_parameters = false;  // ZeRO-3: shards live in pinned host memory

  bool operator==(const ScheduleOptions&) const = default;
};

/// Which parameters of ZeRO-3 are gathered once per optimizer step and then stay.
struct KeepGathered {
  bool all = false;
  std::vector<std::string> patterns;  // names with '*' for any run of characters

  bool operator==(const KeepGathered&) const = default;
};

/// How long DeepCompile's passes believe that gathers take: as DeepSpeed's profiler has it, which
/// times calls that find the parameter gathered; or as measured.
enum class GatherTimes : std::uint8_t { kDeepSpeed, kAsMeasured };

/// Where gathers of a compiled forward stand: where Inductor of torch 2.11 leaves them, or where
/// DeepCompile's passes put them.
enum class GatherOrder : std::uint8_t { kInductor211, kDeepSpeed };

/// deepspeed-eager, ZeRO-3: when modules' parameters are gathered and kept, in elements.
/// DeepSpeed's stage3_prefetch_bucket_size, param_persistence_threshold, max_live_parameters and
/// max_reuse_distance.
struct EagerGathers {
  std::int64_t prefetch_bucket = 50'000'000;
  std::int64_t persistence_threshold = 100'000;
  std::int64_t max_live = 1'000'000'000;
  std::int64_t max_reuse_distance = 1'000'000'000;

  bool operator==(const EagerGathers&) const = default;
};

/// What the forward lets go of behind its module: nothing; every group but the root's, as FSDP2
/// does unless told (None); or every group (True).
enum class ReshardAfterForward : std::uint8_t { kNever, kBlocks, kAll };

/// fsdp: which parameters make a group, and how long it stays. FSDP2's fully_shard.
struct FsdpGroups {
  ReshardAfterForward reshard_after_forward = ReshardAfterForward::kBlocks;
  std::vector<std::string> wrap;  // modules that are a group each, names with '*' for a part
                                  // between dots; none: the children of every outermost list

  bool operator==(const FsdpGroups&) const = default;
};

/// Optimizer states that leave the GPU between optimizer steps: all, or in DeepSpeed's order as
/// many as it takes to free so many bytes.
struct OffloadOptimizer {
  bool all = false;
  Bytes bytes;  // 0: none, unless all

  bool operator==(const OffloadOptimizer&) const = default;
};

/// What a person asks for: a policy by its versioned name, and its options. `Resolve` turns it into
/// a Plan. File form: dc-plan-spec/1, YAML or JSON (docs/reference/plans.md).
struct PlanSpec {
  std::string policy = "plain-1";
  ScheduleOptions options;
  std::optional<std::vector<std::string>> passes = {};   // nothing: the policy's and stage's own
  std::int64_t gather_ahead = 0;                         // pass of this name: gathers ahead of use
  KeepGathered keep_gathered;                            // pass of this name
  GatherTimes gather_times = GatherTimes::kDeepSpeed;    // deepcompile, ZeRO-3
  GatherOrder gather_order = GatherOrder::kInductor211;  // deepcompile, ZeRO-3, compiled graphs
  EagerGathers eager_gathers;                            // deepspeed-eager, ZeRO-3
  FsdpGroups fsdp_groups;                                // fsdp
  OffloadOptimizer offload_optimizer;                    // pass offload_optimizer
  bool offload_activation = false;                       // deepcompile, ZeRO-3
  Bytes max_fuse_size = Bytes::MiB(64);                  // pass fuse_gathers: of a group

  bool operator==(const PlanSpec&) const = default;
};

/// Parameters whose gathers are issued together, right before op `position` of a graph's order.
/// More than one makes an NCCL group.
struct GatherGroup {
  std::size_t position = 0;  // 0 … op count of the graph
  std::vector<ParamId> params;

  bool operator==(const GatherGroup&) const = default;
};

/// What the host may do for parameters or activations between two ops of a graph.
enum class GraphEventKind : std::uint8_t {
  kGather,             // issue their gathers, as one launch
  kWait,               // the compute stream waits for their gathers
  kRelease,            // their memory goes back
  kReduce,             // their gradients go into the reduce bucket
  kReloadShard,        // offloaded shards come to the GPU, where their gather has not fetched them
  kOffloadActivation,  // a copy on the host replaces them; compute waits for it
  kReloadActivation,   // copy them back
  kWaitActivation,     // the compute stream waits for that copy
};

/// Something that happens right before op `position` of a graph's order.
struct GraphEvent {
  GraphEventKind kind = GraphEventKind::kGather;
  std::size_t position = 0;  // 0 … op count of the graph
  std::vector<ParamId> params;
  std::vector<ValueId> values = {};  // activations, instead of parameters

  bool operator==(const GraphEvent&) const = default;
};

/// What an optimizer may keep for a rank's partition of the parameters of one dtype, a tensor each,
/// in the order in which DeepSpeed offloads them. All keep master weights; which moments,
/// OptimizerSpec says.
enum class OptimizerTensor : std::uint8_t { kFirstMoment, kSecondMoment, kMaster };
inline constexpr std::size_t kOptimizerTensors = 3;
/// DeepSpeed's names: exp_avg, exp_avg_sq, hp_param.
std::span<const std::string_view> OptimizerTensorNames();

/// One of them: of the partition of the parameters of one dtype.
struct OptimizerState {
  DType dtype = DType::kBFloat16;
  OptimizerTensor tensor = OptimizerTensor::kFirstMoment;

  bool operator==(const OptimizerState&) const = default;
};

/// What the host may do with optimizer states between two ops of a graph.
enum class StateMoveKind : std::uint8_t {
  kOffload,            // copy them to pinned host memory and free them
  kReload,             // allocate them and copy them back
  kSynchronize,        // the host waits until their copies have ended
  kSynchronizeDevice,  // the host waits for all streams
};

/// Happens right before op `position` of a graph's order, and before gathers and events there.
struct StateMove {
  StateMoveKind kind = StateMoveKind::kOffload;
  std::size_t position = 0;  // op count of the graph: before a backward's end, which flushes the
                             // bucket; op count + 1: behind it
  std::vector<OptimizerState> states;  // in the order of their copies; none to synchronize

  bool operator==(const StateMove&) const = default;
};

/// The decisions for one recorded graph.
struct GraphPlan {
  std::vector<OpId> order;           // every op of the graph, in host issue order
  std::vector<GatherGroup> gathers;  // ZeRO-3, by position; one entry a parameter in use. Waits
                                     // come at the first use, releases after the last, reductions
                                     // with the gradient
  std::vector<GraphEvent> events = {};  // ZeRO-3, instead of gathers: all of them where they stand,
                                        // in host order; each gather, wait, release and gradient
                                        // once
  std::vector<StateMove> state_moves = {};  // by position

  bool operator==(const GraphPlan&) const = default;
};

/// Every decision spelled out; `Lower` turns it into a Schedule. File form: dc-plan/1, JSON.
struct Plan {
  std::string policy;  // that resolved it, for reports
  int ranks = 1;
  ScheduleOptions options;
  std::vector<ParamId> persistent;  // ZeRO-3: stay gathered; ascending
  std::vector<GraphPlan> graphs;    // one a recorded graph

  bool operator==(const Plan&) const = default;
};

}  // namespace dcsim
