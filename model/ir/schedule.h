#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/base/ids.h"
#include "model/base/units.h"
#include "model/ir/dtype.h"
#include "model/ir/plan.h"

namespace dcsim {

/// What a task is, in DeepCompile's words. Tasks without a stream are done by the host alone.
enum class TaskKind : std::uint8_t {
  kCompute,          // one recorded op; without a kernel (a view) it has no stream
  kAllGather,        // parameters to their whole form; several make a fused prefetch
  kWait,             // a stream waits for events of others
  kRelease,          // host: a gathered parameter's memory goes back
  kAccumulate,       // add a micro-step's gradient to the one kept
  kMakeContiguous,   // copy a gradient whose strides the bucket cannot take
  kReduceGradCopy,   // gradient into its slice of the reduce bucket
  kPreDivide,        // bucket divided by the number of ranks
  kReduce,           // the collectives of a bucket flush
  kStoreReduced,     // reduced slices into, or added to, the gradient partition
  kHostSynchronize,  // host waits for its events before going on
  kEndBackward,      // kHostSynchronize that ends a backward graph; buckets go back
  kAllocate,         // host: buffers for what follows
  kSetTangents,      // the gradients that a backward starts from: 1 / micro-steps for the loss
  kClearGradients,   // zero a new gradient partition
  kFree,             // host: buffers go back
  kGradientNorm,     // of the gradient partition
  kReduceNorm,       // sum of the squared norms over ranks
  kCastGradients,    // gradient partition to the dtype of master weights
  kClipGradients,    // scale it to the allowed norm
  kOptimizerStep,    // new master weights and moments of the partition
  kStoreParams,      // updated float32 partition to the parameters' dtype
  kGatherUpdated,    // ZeRO-1 and 2: all ranks get the updated parameters
  kBarrier,          // no rank goes on before all have come: guards memory that peers read
  kFlatten,          // eager buckets: gradients into one flat tensor, ZeRO-3 rank by rank
  kUnflatten,        // eager buckets: reduced values back into the gradients
  kOffload,          // a state, shard or activation to pinned host memory
  kReload,           // and back
  kCastShard,        // this rank's shard to the dtype of its gather (fuse_casts)
  kCopyInputs,       // a micro-step's inputs from pinned host memory, where they are large
  kCastBucket,       // eager buckets: gradients to the dtype of their reduction, or back; FSDP2:
                     // reduced ones to that of the shards
  kHostCalls,        // host: what DeepSpeed and autograd do around the graphs
  kGatherCopyIn,     // FSDP2: a group's shards cast, or copied to where they are gathered
  kGatherCopyOut,    // FSDP2: a gathered group's parameters, each into memory of its own
  kReduceCopyIn,     // FSDP2: a group's gradients into one tensor, rank by rank
};

std::span<const std::string_view> TaskKindNames();
std::string_view TaskKindName(TaskKind kind);

/// Streams of DeepCompile, as indices into a schedule's stream table. kCopy fills reduce buckets,
/// and what FSDP2 gathers, kOffload copies to the host and optimizer states from it, kReload other
/// tensors from it.
enum class StreamRole : std::uint8_t { kCompute, kGather, kReduce, kCopy, kOffload, kReload };
std::string_view StreamRoleName(StreamRole role);
constexpr StreamId StreamOf(StreamRole role) {
  return StreamId(static_cast<std::size_t>(role));
}
inline constexpr std::size_t kStreamCount = 6;
constexpr std::uint8_t StreamBit(StreamRole role) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(role));
}

enum class CollectiveKind : std::uint8_t { kAllGather, kReduceScatter, kAllReduce };
std::span<const std::string_view> CollectiveKindNames();
std::string_view CollectiveKindName(CollectiveKind kind);

/// One parameter's part of a collective. In a bucket it lies `offset` elements from the start.
struct CollectiveCall {
  ParamId param;
  std::int64_t elements = 0;  // of the full tensor, padding for equal shards included
  std::int64_t offset = 0;    // elements, in the reduce bucket

  bool operator==(const CollectiveCall&) const = default;
};

/// Collectives launched together on one communicator: a single one, or one NCCL group.
struct Collective {
  CollectiveKind kind = CollectiveKind::kAllGather;
  Engine engine = Engine::kNccl;
  DType dtype = DType::kBFloat16;
  std::uint8_t communicator = 0;
  bool in_place = false;    // of a gather: a rank's part lies where it shall be
  bool one_launch = false;  // a single collective over all calls' elements (flush: one_per_bucket)
  int ranks = 1;
  std::vector<CollectiveCall> calls;

  /// Full tensors, padding included: what nccl-tests calls the size of each of the three kinds.
  Bytes payload() const;
  /// Sent by each rank: (n-1)/n of the payload, twice that for an all-reduce; rounded up.
  Bytes wire() const;
  std::size_t launches() const { return one_launch ? 1 : calls.size(); }
  bool operator==(const Collective&) const = default;
};

struct CollectiveHash {
  std::size_t operator()(const Collective& collective) const;
};

/// How memory work goes through memory; each has a rate of its own.
enum class MemoryPattern : std::uint8_t {
  kCopy,               // read and write alike tensors
  kScale,              // in place, by a number of the host
  kClip,               // in place, by a tensor of one element
  kAdd,                // one tensor added to another, in place
  kWiden,              // the parameters' dtype to float32
  kNarrow,             // float32 to the parameters' dtype
  kFill,               // write only
  kNorm,               // read only
  kAdamW,              // torch's fused kernel of AdamW and Adam
  kAdamWUneven,        // … over elements that four does not divide, which it takes one by one
  kPasses,             // the optimizer in elementwise passes
  kOffload,            // to pinned host memory, over the link between host and GPU
  kReload,             // from there
  kInputs,             // from there, what a micro-step reads
  kFusedUpdate,        // another fused optimizer kernel, by four elements
  kFusedUpdateUneven,  // … one by one
};
std::span<const std::string_view> MemoryPatternNames();
std::string_view MemoryPatternName(MemoryPattern pattern);

/// Parts that a kernel of at::cat takes at most. Source: PyTorch 2.11, CAT_ARRAY_BATCH_SIZE in
/// aten/src/ATen/native/cuda/Shape.cu.
inline constexpr std::int64_t kConcatenatedAtOnce = 128;

/// What the host does in Python for a task, besides launches.
struct PythonCalls {
  std::uint32_t operators = 0;       // calls of PyTorch's operators
  std::uint32_t autograd_nodes = 0;  // that end in a parameter
  std::uint32_t graphs = 0;          // compiled graphs that are entered
  std::uint32_t modules = 0;         // whose hooks fetch and release parameters

  bool operator==(const PythonCalls&) const = default;
};

/// What a task asks of device and host. Tasks that ask the same share one Work, so that costs are
/// looked up once for a recorded op, not once for a micro-step.
struct Work {
  enum class Kind : std::uint8_t { kNone, kOp, kCollective, kMemory };
  Kind kind = Kind::kNone;
  MemoryPattern pattern = MemoryPattern::kCopy;  // kMemory
  std::uint16_t events = 0;    // event records and stream waits that the host makes
  std::uint32_t launches = 0;  // kMemory: kernels
  std::uint32_t subject = 0;   // kOp: OpId; kCollective, and kMemory over a bucket: CollectiveId;
                               // kMemory on one gradient: ParamId; kOffload, kReload: as the
                               // buffer on the device
  Bytes moved;                 // kMemory: bytes read plus bytes written
  std::int64_t offset = 0;     // kReduceGradCopy: elements from the start of the bucket
  bool concatenates = false;   // kMemory over a bucket: at::cat brings its parts together
  PythonCalls python;

  bool operator==(const Work&) const = default;
};
using WorkId = Id<struct WorkTag>;

struct WorkHash {
  std::size_t operator()(const Work& work) const;
};

/// What a buffer holds; the classes of a memory report.
enum class BufferClass : std::uint8_t {
  kParameter,
  kGatheredParameter,
  kMaster,
  kOptimizerState,
  kGradient,
  kGradientPartition,
  kReduceBucket,
  kActivation,
  kHeldOutput,
  kInput,
  kConstant,
  kTemporary,
  kWorkspace,
  kPinnedHost,  // on the host, for what is offloaded
};
std::string_view BufferClassName(BufferClass buffer_class);
std::span<const std::string_view> BufferClassNames();

/// Of optimizer states: a number for each, by flat tensor (FlatGroups, model/graph/sharding.h).
constexpr std::uint32_t StateIndex(std::size_t group, OptimizerTensor tensor) {
  return static_cast<std::uint32_t>(group * kOptimizerTensors + static_cast<std::size_t>(tensor));
}

/// Memory that tasks use: of the device, or pinned on the host. Each is allocated once and freed at
/// most once a step, resident ones only to be allocated again in the same step.
struct Buffer {
  Bytes bytes;  // > 0, as requested from the allocator
  std::uint32_t subject =
      0;                  // StorageId of activations, gradients; ParamId of gathered parameters;
                          // StateIndex of master weights and optimizer states that move
  std::uint8_t pool = 0;  // stream whose allocator pool it comes from; on the host: 0, or a number
                          // of the tensor in which offloaded shards lie together
  BufferClass buffer_class = BufferClass::kActivation;
  bool resident = false;  // outlives steps; freed only while it is offloaded
  TaskId first_user;      // of a resident: the task with which the first step allocates it, behind
                          // the first block of the task's own; none: allocated before all steps
  bool carried = false;   // freed in the next step (an output that the caller holds)
  std::uint8_t recorded_streams =
      0;  // StreamBit of those that record_stream names when it is freed

  bool on_host() const { return buffer_class == BufferClass::kPinnedHost; }
  /// Whether it holds something before the first step. On the host only parameters do.
  bool starts_filled() const { return resident && (!on_host() || pool != 0); }
};

/// A buffer that a task reads or writes.
struct BufferUse {
  BufferId buffer;
  bool writes = false;
};

/// One call of the allocator that the host makes while it issues a task.
struct MemoryStep {
  BufferId buffer;
  bool frees = false;
};

struct Task {
  TaskKind kind = TaskKind::kCompute;
  std::uint8_t stream = kNoStream;
  std::uint16_t micro_step = 0;
  WorkId work;

  static constexpr std::uint8_t kNoStream = 255;
  bool on_host() const { return stream == kNoStream; }
};

/// Ranks of which a schedule tells what each does: all of up to so many, of more so many evenly
/// apart, from the first one on.
inline constexpr int kRanksTold = 8;

/// What another rank than the first does in a task that is not the same on all: it stores a bucket
/// of which each rank owns another part.
struct RankWork {
  TaskId task;
  int told = 0;  // which of the ranks told of
  WorkId work;
};

/// Micro-steps of a step that its list of tasks leaves out, because they repeat those in it: behind
/// micro-step `from` each is like the one `period` before it, but for the last of the step. They
/// come before the last of the list; `period` divides their number.
struct Repetition {
  std::uint32_t left_out = 0;
  std::uint32_t period = 1;
  std::uint32_t from = 0;
};

/// One optimizer step, wholly decided: tasks in host issue order. Interpreted alike by the
/// simulator and by the executor. Issuing a task means, in this order: the host blocks (host tasks
/// with waits), makes the task's allocator calls in their order, and puts it on its stream behind
/// the events that it waits for. Immutable once built (ScheduleBuilder).
class Schedule {
 public:
  std::size_t task_count() const { return tasks_.size(); }
  const Task& task(TaskId id) const { return tasks_[id.index()]; }
  const Work& work(WorkId id) const { return works_[id.index()]; }
  const Collective& collective(CollectiveId id) const { return collectives_[id.index()]; }
  const Buffer& buffer(BufferId id) const { return buffers_[id.index()]; }

  std::span<const Task> tasks() const { return tasks_; }
  std::span<const Work> works() const { return works_; }
  std::span<const Collective> collectives() const { return collectives_; }
  std::span<const Buffer> buffers() const { return buffers_; }
  /// Resident buffers of the device in the order of their allocation, before the first step.
  std::span<const BufferId> residents() const { return residents_; }

  /// Earlier tasks whose completion this one waits for.
  std::span<const TaskId> waits(TaskId id) const { return waits_.of(id.index()); }
  std::span<const MemoryStep> memory(TaskId id) const { return memory_.of(id.index()); }
  std::span<const BufferUse> uses(TaskId id) const { return uses_.of(id.index()); }

  /// How many ranks are told of: one where all do the same.
  int ranks_told() const;
  /// What the others do that the first does not, by task and rank.
  std::span<const RankWork> rank_works() const { return rank_works_; }

  /// The collective of a collective task, or null.
  const Collective* FindCollective(TaskId id) const;

  /// Lower leaves nothing out.
  const Repetition& repetition() const { return repetition_; }
  Schedule Repeating(const Repetition& repetition) &&;

  int ranks() const { return ranks_; }
  const ScheduleOptions& options() const { return options_; }

  /// Pinned host memory that one rank takes: PyTorch's pinned allocator rounds each buffer up to a
  /// power of two (ATen/core/CachingHostAllocator.h), those in one tensor together.
  Bytes host_pinned() const;

  /// Bytes that the schedule itself holds, per task, for the benchmark of its size.
  double bytes_per_task() const;

 private:
  friend class ScheduleBuilder;

  /// Lists of all tasks behind each other, in task order.
  template <typename T>
  struct Rows {
    std::vector<T> items;
    std::vector<std::uint32_t> ends;
    std::span<const T> of(std::size_t row) const {
      const std::size_t begin = row == 0 ? 0 : ends[row - 1];
      return std::span<const T>(items).subspan(begin, ends[row] - begin);
    }
    double bytes() const {
      return static_cast<double>(items.size() * sizeof(T) + ends.size() * sizeof(ends[0]));
    }
  };

  std::vector<Task> tasks_;
  std::vector<Work> works_;
  std::vector<Collective> collectives_;
  std::vector<Buffer> buffers_;
  std::vector<BufferId> residents_;
  Rows<TaskId> waits_;
  Rows<MemoryStep> memory_;
  Rows<BufferUse> uses_;
  std::vector<RankWork> rank_works_;
  Repetition repetition_;
  ScheduleOptions options_;
  int ranks_ = 1;
};

/// One task with its lists, as a builder takes it.
struct TaskDraft {
  TaskKind kind = TaskKind::kCompute;
  std::optional<StreamRole> stream;
  std::uint16_t micro_step = 0;
  Work work;
  std::vector<Work> others;  // of the other ranks told of; empty: the same on all
  std::vector<TaskId> waits;
  std::vector<MemoryStep> memory;
  std::vector<BufferUse> uses;

  void Allocate(BufferId buffer) { memory.push_back({buffer, false}); }
  void Free(BufferId buffer) { memory.push_back({buffer, true}); }
  void Read(BufferId buffer) { uses.push_back({buffer, false}); }
  void Write(BufferId buffer) { uses.push_back({buffer, true}); }
};

/// Collects tasks in issue order. Equal works become one, and so do equal collectives.
class ScheduleBuilder {
 public:
  ScheduleBuilder(int ranks, const ScheduleOptions& options);

  BufferId AddBuffer(const Buffer& buffer);
  const Buffer& buffer(BufferId id) const { return schedule_.buffer(id); }
  CollectiveId AddCollective(const Collective& collective);
  TaskId Add(const TaskDraft& draft);
  /// The last task put on a stream, or None(). Copies of inputs do not count: they hold up what
  /// reads them, the compute stream, and nobody who asks how far it was before.
  TaskId last(StreamRole stream) const { return last_[static_cast<std::size_t>(stream)]; }
  std::size_t task_count() const { return schedule_.tasks_.size(); }

  Schedule Build() &&;

 private:
  WorkId AddWork(const Work& work);

  Schedule schedule_;
  std::vector<TaskId> last_;
  std::unordered_map<Work, WorkId, WorkHash> work_ids_;
  std::unordered_map<Collective, CollectiveId, CollectiveHash> collective_ids_;
};

}  // namespace dcsim
