#include <algorithm>

#include "model/base/units.h"
#include "model/passes/lower_state.h"

namespace dcsim {
namespace {

/// Where gradients are copied, divided and reduced: ZeRO-3 has a stream for it, ZeRO-1 and 2 (with
/// overlap_comm off, their default) stay on the compute stream, which waits for each collective.
StreamRole WorkStream(const LowerState& state) {
  return state.plan.options.stage == 3 ? StreamRole::kReduce : StreamRole::kCompute;
}

Bytes BytesOf(const EagerBucket& bucket, std::int64_t elements) {
  return Bytes(elements * ElementBytes(bucket.dtype));
}

BufferId AddTemporary(LowerState& state, Bytes bytes) {
  Buffer buffer;
  buffer.bytes = bytes;
  buffer.buffer_class = BufferClass::kTemporary;
  buffer.pool = static_cast<std::uint8_t>(WorkStream(state));
  return state.builder.AddBuffer(buffer);
}

/// A task on the stream of the reduction, behind the compute stream.
TaskDraft WorkDraft(const LowerState& state, TaskKind kind) {
  TaskDraft draft = state.Draft(kind, WorkStream(state));
  const TaskId last = state.builder.last(StreamRole::kCompute);
  if (WorkStream(state) != StreamRole::kCompute && !last.is_none()) {
    draft.waits.push_back(last);
  }
  return draft;
}

/// Runs of a bucket that belong to one rank, neighbours of the same rank merged. DeepSpeed reduces
/// in place where there is one, else over a flat copy.
std::size_t CountOwners(const LowerState& state, const EagerBucket& bucket) {
  const std::int64_t partition =
      state.layout.partition(state.layout.place(bucket.calls.front().param).group);
  std::size_t runs = 0;
  std::int64_t owner = -1;
  for (const CollectiveCall& call : bucket.calls) {
    const std::int64_t start = state.layout.place(call.param).flat;
    const std::int64_t first = start / partition;
    const std::int64_t last = (start + call.elements - 1) / partition;
    runs += static_cast<std::size_t>(last - first) + (first == owner ? 0U : 1U);
    owner = last;
  }
  return runs;
}

Collective MakeCollective(const LowerState& state, const EagerBucket& bucket) {
  Collective collective;
  collective.kind =
      state.by_parameter() ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  collective.dtype = bucket.dtype;
  collective.communicator = state.reduce_communicator();
  collective.one_launch = true;
  collective.ranks = state.plan.ranks;
  collective.calls = bucket.calls;
  return collective;
}

/// One flush: what is reduced, what of it lies where.
struct EagerFlush {
  std::uint32_t collective = 0;
  std::vector<BufferId> sources;  // the bucket's buffer, or one gradient a call
  BufferId flat;                  // what is reduced, when it is a copy; else None()
  std::int64_t elements = 0;      // of all calls, padded in ZeRO-3

  BufferId reduced() const { return flat.is_none() ? sources.front() : flat; }
};

/// The flush read and written once, by `launches` kernels.
Work PassOver(const EagerBucket& bucket,
              const EagerFlush& flush,
              MemoryPattern pattern,
              std::size_t launches) {
  return MemoryWork(pattern, BytesOf(bucket, 2 * flush.elements), launches, 1, flush.collective);
}

/// Kernels that bring the bucket's parts together: one a part, or one for as many as at::cat takes.
std::size_t FlattenLaunches(const LowerState& state, const EagerBucket& bucket) {
  const int ranks = state.by_parameter() ? state.plan.ranks : 1;
  const auto parts = static_cast<std::int64_t>(bucket.calls.size()) * ranks;
  const bool copies = state.plan.options.flatten == Flatten::kCopy;
  return static_cast<std::size_t>(copies ? parts : DivideUp(parts, kConcatenatedAtOnce));
}

void AddFlatten(LowerState& state, const EagerBucket& bucket, EagerFlush& flush) {
  flush.flat = AddTemporary(state, BytesOf(bucket, flush.elements));
  TaskDraft draft = WorkDraft(state, TaskKind::kFlatten);
  draft.Allocate(flush.flat);
  for (const BufferId source : flush.sources) {
    draft.Read(source);
  }
  draft.Write(flush.flat);
  draft.work = PassOver(bucket, flush, MemoryPattern::kCopy, FlattenLaunches(state, bucket));
  draft.work.concatenates = state.plan.options.flatten == Flatten::kConcatenate;
  state.builder.Add(draft);
}

void AddDivision(LowerState& state, const EagerBucket& bucket, const EagerFlush& flush) {
  TaskDraft draft = WorkDraft(state, TaskKind::kPreDivide);
  draft.Write(flush.reduced());
  draft.work = PassOver(bucket, flush, MemoryPattern::kScale, 1);
  state.builder.Add(draft);
}

void AddReduction(LowerState& state, const EagerFlush& flush) {
  TaskDraft draft = state.Draft(TaskKind::kReduce, StreamRole::kReduce);
  draft.work.kind = Work::Kind::kCollective;
  draft.work.subject = flush.collective;
  draft.work.events = 2;
  const bool own_stream = WorkStream(state) == StreamRole::kReduce;
  if (!own_stream) {
    draft.waits.push_back(state.builder.last(StreamRole::kCompute));
  }
  draft.Write(flush.reduced());
  const TaskId reduce = state.builder.Add(draft);
  if (!own_stream) {
    AddWait(state, StreamRole::kCompute, reduce);
  }
}

/// Reduced values back to where they came from; the flat copy goes.
void AddUnflatten(LowerState& state, const EagerBucket& bucket, const EagerFlush& flush) {
  TaskDraft draft = WorkDraft(state, TaskKind::kUnflatten);
  draft.Read(flush.flat);
  for (const BufferId source : flush.sources) {
    draft.Write(source);
  }
  draft.Free(flush.flat);
  draft.work = PassOver(bucket, flush, MemoryPattern::kCopy, bucket.calls.size());
  state.builder.Add(draft);
}

/// The own part into the gradient partition, added to what earlier micro-steps left there; then
/// gradients that were not copied go.
void AddStore(LowerState& state, EagerBucket& bucket, const EagerFlush& flush) {
  FlatBuffers& flat = state.flat_of(bucket.calls.front().param);
  if (flat.gradient_partition.is_none()) {
    AddGradientPartition(state);
  }
  TaskDraft draft = WorkDraft(state, TaskKind::kStoreReduced);
  SetStoreWork(draft, OwnedShares(state, bucket.calls), bucket.dtype,
               state.has_accumulated_partition, flush.collective);
  if (state.by_parameter()) {
    draft.Read(flush.flat);
    draft.Free(flush.flat);
  } else {
    for (const BufferId source : flush.sources) {
      draft.Read(source);
    }
  }
  draft.Write(flat.gradient_partition);
  for (const TakenGradient& reference : bucket.references) {
    FreeGradient(state, reference, draft);
  }
  state.builder.Add(draft);
}

EagerFlush StartFlush(LowerState& state, const EagerBucket& bucket) {
  EagerFlush flush;
  flush.collective = static_cast<std::uint32_t>(
      state.builder.AddCollective(MakeCollective(state, bucket)).index());
  for (const TakenGradient& reference : bucket.references) {
    flush.sources.push_back(reference.buffer);
  }
  if (flush.sources.empty()) {
    flush.sources.push_back(bucket.buffer);
  }
  for (const CollectiveCall& call : bucket.calls) {
    flush.elements += call.elements;
  }
  return flush;
}

/// ZeRO-1 and 2: with a buffer, division in place and a flat copy only where several ranks own
/// parts; without one, always a flat copy, which is divided. ZeRO-3: a flat copy, rank by rank.
void Flush(LowerState& state, EagerBucket& bucket) {
  if (bucket.calls.empty()) {
    return;
  }
  EagerFlush flush = StartFlush(state, bucket);
  const bool contiguous = state.plan.options.contiguous_gradients;
  if (state.by_parameter() || !contiguous) {
    AddFlatten(state, bucket, flush);
    AddDivision(state, bucket, flush);
  } else {
    AddDivision(state, bucket, flush);
    if (CountOwners(state, bucket) > 1) {
      AddFlatten(state, bucket, flush);
    }
  }
  AddReduction(state, flush);
  if (!state.by_parameter() && !flush.flat.is_none()) {
    AddUnflatten(state, bucket, flush);
  }
  AddStore(state, bucket, flush);
  bucket.calls.clear();
  bucket.references.clear();
  bucket.offset = 0;
}

/// Copies a gradient into the buffer; its own memory goes at once.
void AddCopy(LowerState& state, EagerBucket& bucket, ParamId param, const TakenGradient& gradient) {
  TaskDraft draft = WorkDraft(state, TaskKind::kReduceGradCopy);
  const Bytes bytes = BytesOf(bucket, state.graph.numel(param));
  draft.work =
      MemoryWork(MemoryPattern::kCopy, bytes * 2, 1, 1, static_cast<std::uint32_t>(param.index()));
  draft.work.offset = bucket.offset;
  draft.Read(gradient.buffer);
  draft.Write(bucket.buffer);
  FreeGradient(state, gradient, draft);
  state.builder.Add(draft);
}

}  // namespace

void OpenEagerBucket(LowerState& state, ParamId param) {
  EagerBucket& bucket = state.eager_buckets[state.graph.dtype(param)];
  bucket.dtype = state.graph.dtype(param);
  if (!bucket.buffer.is_none() || !state.plan.options.contiguous_gradients) {
    return;
  }
  Buffer buffer;
  buffer.bytes = BytesOf(bucket, state.plan.options.reduce_bucket);
  buffer.buffer_class = BufferClass::kReduceBucket;
  bucket.buffer = state.builder.AddBuffer(buffer);
  TaskDraft draft = state.Draft(TaskKind::kAllocate);
  draft.Allocate(bucket.buffer);
  state.builder.Add(draft);
}

// A gradient larger than the bucket stays where it is, alone in it.
void AddEagerGradient(LowerState& state, ParamId param, const TakenGradient& gradient) {
  EagerBucket& bucket = state.eager_buckets[state.graph.dtype(param)];
  const std::int64_t numel = state.graph.numel(param);
  const std::int64_t capacity = state.plan.options.reduce_bucket;
  if (bucket.offset > 0 && bucket.offset + numel > capacity) {
    Flush(state, bucket);
  }
  if (!bucket.buffer.is_none() && numel <= capacity) {
    AddCopy(state, bucket, param, gradient);
  } else {
    bucket.references.push_back(gradient);
  }
  const std::int64_t elements =
      state.by_parameter() ? GatheredElements(numel, state.plan.ranks) : numel;
  bucket.calls.push_back({param, elements, bucket.offset});
  bucket.offset += numel;
}

void AddEagerEnd(LowerState& state, bool releases_buffers) {
  TaskDraft draft = state.Draft(TaskKind::kEndBackward);
  const bool resident = state.plan.options.stage == 3;
  for (auto& [dtype, bucket] : state.eager_buckets) {
    Flush(state, bucket);
    if (releases_buffers && !resident && !bucket.buffer.is_none()) {
      draft.Free(bucket.buffer);
      bucket.buffer = BufferId::None();
    }
  }
  if (const TaskId last = state.builder.last(StreamRole::kReduce); resident && !last.is_none()) {
    draft.waits.push_back(last);
  }
  state.builder.Add(draft);
}

}  // namespace dcsim
