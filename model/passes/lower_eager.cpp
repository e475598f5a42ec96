#include <algorithm>

#include "model/base/units.h"
#include "model/passes/lower_state.h"

namespace dcsim {

MemoryPattern CastPattern(std::int64_t from, std::int64_t to) {
  if (from == to) {
    return MemoryPattern::kCopy;
  }
  return from < to ? MemoryPattern::kWiden : MemoryPattern::kNarrow;
}

namespace {

/// Where a bucket is divided, reduced and stored: ZeRO-3 has a stream for it, and so have ZeRO-1
/// and 2 with overlap_comm; without it they stay on the compute stream, which waits for each
/// collective.
StreamRole FlushStream(const LowerState& state) {
  return state.plan.options.stage == 3 || state.plan.options.overlap_comm ? StreamRole::kReduce
                                                                          : StreamRole::kCompute;
}

/// Bytes of an element of the bucket's buffer, and of what is reduced.
std::int64_t HeldBytes(const LowerState& state, const EagerBucket& bucket) {
  return ElementBytes(state.bucket_dtype(bucket.dtype));
}
std::int64_t ReducedBytes(const LowerState& state, const EagerBucket& bucket) {
  return ElementBytes(state.reduction_dtype(bucket.dtype));
}

/// Whether gradients are reduced in another dtype than their own.
bool Casts(const LowerState& state, const EagerBucket& bucket) {
  return state.reduction_dtype(bucket.dtype) != bucket.dtype;
}

BufferId AddTemporary(LowerState& state, Bytes bytes) {
  Buffer buffer;
  buffer.bytes = bytes;
  buffer.buffer_class = BufferClass::kTemporary;
  buffer.pool = static_cast<std::uint8_t>(FlushStream(state));
  return state.builder.AddBuffer(buffer);
}

/// A task on `stream`, behind what the compute stream has so far.
TaskDraft BehindCompute(const LowerState& state, TaskKind kind, StreamRole stream) {
  TaskDraft draft = state.Draft(kind, stream);
  const TaskId last = state.builder.last(StreamRole::kCompute);
  if (stream != StreamRole::kCompute && !last.is_none()) {
    draft.waits.push_back(last);
  }
  return draft;
}
TaskDraft FlushDraft(const LowerState& state, TaskKind kind) {
  return BehindCompute(state, kind, FlushStream(state));
}

/// Runs of a bucket that belong to one rank, neighbours of the same rank merged, unless the
/// gradient partition has another dtype. DeepSpeed reduces in place where there is one, else over a
/// flat copy.
std::size_t CountOwners(const LowerState& state, const EagerBucket& bucket) {
  const std::size_t group = state.layout.place(bucket.calls.front().param).group;
  const std::int64_t partition = state.layout.partition(group);
  const bool merges = state.partition_dtype(group) == bucket.dtype;
  std::size_t runs = 0;
  std::int64_t owner = -1;
  for (const CollectiveCall& call : bucket.calls) {
    const std::int64_t start = state.layout.place(call.param).weights;
    const std::int64_t first = start / partition;
    const std::int64_t last = (start + call.elements - 1) / partition;
    runs += static_cast<std::size_t>(last - first) + (merges && first == owner ? 0U : 1U);
    owner = last;
  }
  return runs;
}

Collective MakeCollective(const LowerState& state, const EagerBucket& bucket) {
  Collective collective;
  collective.kind =
      state.by_parameter() ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  collective.dtype = state.reduction_dtype(bucket.dtype);
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
  BufferId cast;                  // … when it is in another dtype; else None()
  std::int64_t elements = 0;      // of all calls, padded in ZeRO-3

  BufferId in_own_dtype() const { return flat.is_none() ? sources.front() : flat; }
  BufferId reduced() const { return cast.is_none() ? in_own_dtype() : cast; }

  /// All of it read and written once, by `launches` kernels: `bytes` for each element.
  Work Pass(MemoryPattern pattern, std::int64_t bytes, std::size_t launches) const {
    return MemoryWork(pattern, Bytes(bytes * elements), launches, 1, collective);
  }
};

/// Kernels that bring the bucket's parts together: one a part, or one for as many as at::cat takes.
std::size_t FlattenLaunches(const LowerState& state, const EagerBucket& bucket) {
  const int ranks = state.by_parameter() ? state.plan.ranks : 1;
  const auto parts = static_cast<std::int64_t>(bucket.calls.size()) * ranks;
  const bool copies = state.plan.options.flatten == Flatten::kCopy;
  return static_cast<std::size_t>(copies ? parts : DivideUp(parts, kConcatenatedAtOnce));
}

void AddFlatten(LowerState& state, const EagerBucket& bucket, EagerFlush& flush) {
  const std::int64_t element_bytes = HeldBytes(state, bucket);
  flush.flat = AddTemporary(state, Bytes(element_bytes * flush.elements));
  TaskDraft draft = FlushDraft(state, TaskKind::kFlatten);
  draft.Allocate(flush.flat);
  if (flush.cast.is_none()) {
    for (const BufferId source : flush.sources) {
      draft.Read(source);
    }
  } else {
    draft.Read(flush.cast);
    draft.Free(flush.cast);
    flush.cast = BufferId::None();
  }
  draft.Write(flush.flat);
  draft.work = flush.Pass(MemoryPattern::kCopy, 2 * element_bytes, FlattenLaunches(state, bucket));
  draft.work.concatenates = state.plan.options.flatten == Flatten::kConcatenate;
  state.builder.Add(draft);
}

/// What is reduced, or in ZeRO-3 gradients that no buffer took, in the dtype of the reduction:
/// `launches` kernels.
void AddCast(LowerState& state,
             const EagerBucket& bucket,
             EagerFlush& flush,
             std::size_t launches) {
  const std::int64_t own = ElementBytes(bucket.dtype);
  const std::int64_t other = ReducedBytes(state, bucket);
  TaskDraft draft = FlushDraft(state, TaskKind::kCastBucket);
  if (flush.flat.is_none()) {
    for (const BufferId source : flush.sources) {
      draft.Read(source);
    }
  } else {
    draft.Read(flush.flat);
  }
  flush.cast = AddTemporary(state, Bytes(other * flush.elements));
  draft.Allocate(flush.cast);
  draft.Write(flush.cast);
  draft.work = flush.Pass(CastPattern(own, other), own + other, launches);
  state.builder.Add(draft);
}

/// Reduced values back to their own dtype, where they were cast from.
void AddCastBack(LowerState& state, const EagerBucket& bucket, const EagerFlush& flush) {
  const std::int64_t own = ElementBytes(bucket.dtype);
  const std::int64_t other = ReducedBytes(state, bucket);
  TaskDraft draft = FlushDraft(state, TaskKind::kCastBucket);
  draft.Read(flush.cast);
  draft.Write(flush.in_own_dtype());
  draft.work = flush.Pass(CastPattern(other, own), own + other, 1);
  state.builder.Add(draft);
}

void AddDivision(LowerState& state, const EagerBucket& bucket, const EagerFlush& flush) {
  TaskDraft draft = FlushDraft(state, TaskKind::kPreDivide);
  draft.Write(flush.reduced());
  const bool in_own_dtype = !state.by_parameter() && flush.cast.is_none();
  const std::int64_t element_bytes =
      in_own_dtype ? ElementBytes(bucket.dtype) : ReducedBytes(state, bucket);
  draft.work = flush.Pass(MemoryPattern::kScale, 2 * element_bytes, 1);
  state.builder.Add(draft);
}

void AddReduction(LowerState& state, const EagerFlush& flush) {
  TaskDraft draft = state.Draft(TaskKind::kReduce, StreamRole::kReduce);
  draft.work.kind = Work::Kind::kCollective;
  draft.work.subject = flush.collective;
  draft.work.events = 2;
  const bool own_stream = FlushStream(state) == StreamRole::kReduce;
  if (!own_stream) {
    draft.waits.push_back(state.builder.last(StreamRole::kCompute));
  }
  draft.Write(flush.reduced());
  const TaskId reduce = state.builder.Add(draft);
  if (!own_stream) {
    AddWait(state, StreamRole::kCompute, reduce);
  }
}

/// Reduced values back to where they came from; the flat copy and that in another dtype go.
void AddUnflatten(LowerState& state, const EagerBucket& bucket, const EagerFlush& flush) {
  const std::int64_t own = ElementBytes(bucket.dtype);
  const std::int64_t from = flush.cast.is_none() ? own : ReducedBytes(state, bucket);
  TaskDraft draft = FlushDraft(state, TaskKind::kUnflatten);
  draft.Read(flush.reduced());
  for (const BufferId source : flush.sources) {
    draft.Write(source);
  }
  for (const BufferId temporary : {flush.flat, flush.cast}) {
    if (!temporary.is_none()) {
      draft.Free(temporary);
    }
  }
  draft.work = flush.Pass(CastPattern(from, own), from + own, bucket.calls.size());
  state.builder.Add(draft);
}

/// In which reduced gradients are stored: ZeRO-1 and 2 copy them back, but add to a partition of
/// another dtype what was reduced.
DType StoredDType(const LowerState& state, const EagerBucket& bucket) {
  const std::size_t group = state.layout.place(bucket.calls.front().param).group;
  const bool copied_back = !state.by_parameter() && state.partition_dtype(group) == bucket.dtype;
  return copied_back ? bucket.dtype : state.reduction_dtype(bucket.dtype);
}

/// The own part into the gradient partition, added to what earlier micro-steps left there; then
/// gradients that were not copied go, with overlap_comm when the compute stream has waited for it.
void AddStore(LowerState& state, EagerBucket& bucket, const EagerFlush& flush) {
  FlatBuffers& flat = state.flat_of(bucket.calls.front().param);
  if (flat.gradient_partition.is_none()) {
    AddGradientPartition(state);
  }
  const std::size_t group = state.layout.place(bucket.calls.front().param).group;
  const PartitionStore store =
      StoreOf(state, group, StoredDType(state, bucket), state.has_accumulated_partition);
  TaskDraft draft = FlushDraft(state, TaskKind::kStoreReduced);
  SetStoreWork(draft, OwnedShares(state, bucket.calls), store, flush.collective);
  if (store.widens) {
    AddWidened(state, draft, bucket.calls, state.by_parameter());
  }
  if (state.by_parameter()) {
    draft.Read(flush.flat);
    draft.Free(flush.flat);
  } else {
    for (const BufferId source : flush.sources) {
      draft.Read(source);
    }
  }
  draft.Write(flat.gradient_partition);
  if (state.plan.options.overlap_comm) {
    bucket.in_flight = bucket.references;
  } else {
    FreeGradients(state, bucket.references, draft);
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
    flush.sources.push_back(bucket.buffers[bucket.current]);
  }
  for (const CollectiveCall& call : bucket.calls) {
    flush.elements += call.elements;
  }
  return flush;
}

/// ZeRO-1 and 2: with a buffer, division in place and a flat copy only where several ranks own
/// parts; without one, always a flat copy, which is divided. ZeRO-3: a flat copy, rank by rank. A
/// reduction in another dtype casts what is reduced, and back.
void AddFlushTasks(LowerState& state, const EagerBucket& bucket, EagerFlush& flush) {
  const bool contiguous = state.plan.options.contiguous_gradients;
  const bool casts = Casts(state, bucket);
  if (state.by_parameter()) {
    if (casts && !bucket.references.empty()) {
      AddCast(state, bucket, flush, bucket.references.size());
    }
    AddFlatten(state, bucket, flush);
    AddDivision(state, bucket, flush);
    return AddReduction(state, flush);
  }
  if (contiguous) {
    AddDivision(state, bucket, flush);
  }
  if (!contiguous || CountOwners(state, bucket) > 1) {
    AddFlatten(state, bucket, flush);
  }
  if (casts) {
    AddCast(state, bucket, flush, 1);
  }
  if (!contiguous) {
    AddDivision(state, bucket, flush);
  }
  AddReduction(state, flush);
  if (casts) {
    AddCastBack(state, bucket, flush);
  }
  if (casts || !flush.flat.is_none()) {
    AddUnflatten(state, bucket, flush);
  }
}

/// With overlap_comm the compute stream first waits for the reductions before this one: the buffer
/// that it fills next is free then, and so are gradients that were reduced where they are.
void Flush(LowerState& state, EagerBucket& bucket) {
  if (bucket.calls.empty()) {
    return;
  }
  const TaskId earlier = state.builder.last(StreamRole::kReduce);
  if (state.plan.options.overlap_comm && !earlier.is_none()) {
    TaskDraft draft = WaitDraft(state, StreamRole::kCompute, earlier);
    FreeGradients(state, bucket.in_flight, draft);
    state.builder.Add(draft);
  }
  EagerFlush flush = StartFlush(state, bucket);
  AddFlushTasks(state, bucket, flush);
  AddStore(state, bucket, flush);
  bucket.calls.clear();
  bucket.references.clear();
  bucket.offset = 0;
}

/// Copies a gradient into the buffer; its own memory goes at once.
void AddCopy(LowerState& state, EagerBucket& bucket, ParamId param, const TakenGradient& gradient) {
  const auto stream = state.plan.options.stage == 3 ? StreamRole::kReduce : StreamRole::kCompute;
  TaskDraft draft = BehindCompute(state, TaskKind::kReduceGradCopy, stream);
  const std::int64_t own = ElementBytes(bucket.dtype);
  const std::int64_t held = HeldBytes(state, bucket);
  const Bytes moved(state.graph.numel(param) * (own + held));
  draft.work =
      MemoryWork(CastPattern(own, held), moved, 1, 1, static_cast<std::uint32_t>(param.index()));
  draft.work.offset = bucket.offset;
  draft.Read(gradient.buffer);
  draft.Write(bucket.buffers[bucket.current]);
  FreeGradient(state, gradient, draft);
  state.builder.Add(draft);
}

}  // namespace

void OpenEagerBucket(LowerState& state, ParamId param) {
  EagerBucket& bucket = state.eager_buckets[state.graph.dtype(param)];
  bucket.dtype = state.graph.dtype(param);
  if (!bucket.buffers.empty() || !state.plan.options.contiguous_gradients) {
    return;
  }
  Buffer buffer;
  buffer.bytes = Bytes(state.plan.options.reduce_bucket * HeldBytes(state, bucket));
  buffer.buffer_class = BufferClass::kReduceBucket;
  TaskDraft draft = state.Draft(TaskKind::kAllocate);
  for (int i = 0; i < (state.plan.options.overlap_comm ? 2 : 1); ++i) {
    bucket.buffers.push_back(state.builder.AddBuffer(buffer));
    draft.Allocate(bucket.buffers.back());
  }
  bucket.current = 0;
  state.builder.Add(draft);
}

// A gradient larger than the bucket stays where it is, alone in it.
void AddEagerGradient(LowerState& state, ParamId param, const TakenGradient& gradient) {
  EagerBucket& bucket = state.eager_buckets[state.graph.dtype(param)];
  const std::int64_t numel = state.graph.numel(param);
  const std::int64_t capacity = state.plan.options.reduce_bucket;
  if (bucket.offset > 0 && bucket.offset + numel > capacity) {
    Flush(state, bucket);
    bucket.current = state.plan.options.overlap_comm ? 1 - bucket.current : 0;
  }
  if (!bucket.buffers.empty() && numel <= capacity) {
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
    FreeGradients(state, bucket.in_flight, draft);
    if (releases_buffers && !resident) {
      for (const BufferId buffer : bucket.buffers) {
        draft.Free(buffer);
      }
      bucket.buffers.clear();
    }
  }
  const bool own_stream = FlushStream(state) == StreamRole::kReduce;
  if (const TaskId last = state.builder.last(StreamRole::kReduce); own_stream && !last.is_none()) {
    draft.waits.push_back(last);
  }
  state.builder.Add(draft);
}

}  // namespace dcsim
