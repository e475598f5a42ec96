#include <algorithm>
#include <utility>

#include "model/passes/lower_state.h"

namespace dcsim {
namespace {

std::uint16_t Count(std::size_t count) {
  return static_cast<std::uint16_t>(count);
}

Bytes BucketBytes(const ReduceBucket& bucket, std::int64_t elements) {
  return Bytes(elements * ElementBytes(bucket.dtype));
}

/// Both buffers come from the compute stream's pool at the first gradient of their dtype.
void AllocateBuffers(LowerState& state, ReduceBucket& bucket) {
  const std::int64_t capacity = state.plan.options.reduce_bucket;
  TaskDraft draft = state.Draft(TaskKind::kAllocate);
  for (int i = 0; i < (state.plan.options.double_buffer ? 2 : 1); ++i) {
    Buffer buffer;
    buffer.bytes = BucketBytes(bucket, capacity);
    buffer.buffer_class = BufferClass::kReduceBucket;
    const BufferId id = state.builder.AddBuffer(buffer);
    draft.Allocate(id);
    bucket.buffers.push_back({id, capacity, TaskId::None(), true});
  }
  state.builder.Add(draft);
}

/// A gradient larger than the buffer: the host waits for the reduce stream, then a larger buffer
/// takes the place of this one.
void Grow(LowerState& state, ReduceBucket& bucket, std::int64_t elements) {
  TaskDraft draft = state.Draft(TaskKind::kHostSynchronize);
  if (const TaskId last = state.builder.last(StreamRole::kReduce); !last.is_none()) {
    draft.waits.push_back(last);
  }
  ReduceBuffer& current = bucket.buffers[bucket.current];
  Buffer buffer;
  buffer.bytes = BucketBytes(bucket, elements);
  buffer.buffer_class = BufferClass::kReduceBucket;
  const BufferId larger = state.builder.AddBuffer(buffer);
  draft.Allocate(larger);
  draft.Free(current.buffer);
  state.builder.Add(draft);
  current = {larger, elements, TaskId::None(), true};
}

void AddPreDivide(LowerState& state, const ReduceBucket& bucket, std::uint32_t collective) {
  TaskDraft draft = state.Draft(TaskKind::kPreDivide, StreamRole::kReduce);
  const Bytes moved = BucketBytes(bucket, 2 * bucket.offset);  // read and written
  draft.work = MemoryWork(MemoryPattern::kScale, moved, bucket.calls.size(), bucket.calls.size(),
                          collective);
  draft.waits.push_back(state.builder.last(StreamRole::kCopy));
  draft.Write(bucket.buffers[bucket.current].buffer);
  state.builder.Add(draft);
}

/// Temporary that reduce-scatters receive into when the partition already holds earlier gradients,
/// or has another dtype.
BufferId AddReceiveBuffer(LowerState& state, const ReduceBucket& bucket) {
  Buffer buffer;
  buffer.bytes = BucketBytes(bucket, OwnedShares(state, bucket.calls).front().elements);
  buffer.buffer_class = BufferClass::kTemporary;
  buffer.pool = static_cast<std::uint8_t>(StreamRole::kReduce);
  return state.builder.AddBuffer(buffer);
}

TaskId AddCollectives(LowerState& state,
                      const ReduceBucket& bucket,
                      std::uint32_t collective,
                      BufferId receive) {
  TaskDraft draft = state.Draft(TaskKind::kReduce, StreamRole::kReduce);
  draft.work.kind = Work::Kind::kCollective;
  draft.work.subject = collective;
  const BufferId buffer = bucket.buffers[bucket.current].buffer;
  if (!state.by_parameter()) {
    draft.Write(buffer);
    return state.builder.Add(draft);
  }
  draft.Read(buffer);
  if (!receive.is_none()) {
    draft.Allocate(receive);
  }
  const BufferId partition = state.flat_of(bucket.calls.front().param).gradient_partition;
  draft.Write(receive.is_none() ? partition : receive);
  return state.builder.Add(draft);
}

/// Reduced values into the gradient partition. Reduce-scatters of a first micro-step have written
/// there already; all-reduces leave each rank to copy or add its own slices, one kernel each;
/// a bucket may lie in the partition of a single rank.
TaskId AddStore(LowerState& state,
                const ReduceBucket& bucket,
                std::uint32_t collective,
                BufferId receive,
                TaskId reduce) {
  if (state.by_parameter() && receive.is_none()) {
    return reduce;
  }
  const std::size_t group = state.layout.place(bucket.calls.front().param).group;
  const PartitionStore store = StoreOf(state, group, bucket.dtype, state.has_accumulated_partition);
  TaskDraft draft = state.Draft(TaskKind::kStoreReduced, StreamRole::kReduce);
  SetStoreWork(draft, OwnedShares(state, bucket.calls), store, collective);
  if (store.widens) {
    AddWidened(state, draft, bucket.calls, false);
  }
  draft.Read(receive.is_none() ? bucket.buffers[bucket.current].buffer : receive);
  draft.Write(state.flat_of(bucket.calls.front().param).gradient_partition);
  if (!receive.is_none()) {
    draft.Free(receive);
  }
  return state.builder.Add(draft);
}

/// Compute waits for the bucket's copies; then the gradients that they read may go.
void ReleaseGradients(LowerState& state, ReduceBucket& bucket) {
  TaskDraft draft = state.Draft(TaskKind::kWait, StreamRole::kCompute);
  draft.work.events = Count(bucket.calls.size());
  draft.waits.push_back(state.builder.last(StreamRole::kCopy));
  for (const StorageId storage : bucket.retained_storages) {
    StorageHold& hold = state.holds[storage.index()];
    --hold.reductions;
    if (hold.reductions == 0 && hold.ops_done) {
      FreeStorage(state, storage, draft);
    }
  }
  for (const BufferId buffer : bucket.retained_buffers) {
    draft.Free(buffer);
  }
  state.builder.Add(draft);
  bucket.retained_storages.clear();
  bucket.retained_buffers.clear();
}

void Flush(LowerState& state, ReduceBucket& bucket) {
  if (bucket.calls.empty()) {
    return;
  }
  Collective collective;
  collective.kind =
      state.by_parameter() ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  collective.dtype = bucket.dtype;
  collective.communicator = state.reduce_communicator();
  collective.one_launch = state.plan.options.flush_collectives == FlushCollectives::kOnePerBucket;
  collective.ranks = state.plan.ranks;
  collective.calls = bucket.calls;
  const auto id = static_cast<std::uint32_t>(state.builder.AddCollective(collective).index());
  AddPreDivide(state, bucket, id);
  const std::size_t group = state.layout.place(bucket.calls.front().param).group;
  const bool receives_aside =
      state.by_parameter() &&
      (state.has_accumulated_partition || state.partition_dtype(group) != bucket.dtype);
  const BufferId receive = receives_aside ? AddReceiveBuffer(state, bucket) : BufferId::None();
  if (state.plan.options.synchronize.before_reduce) {
    AddDeviceSynchronize(state);
  }
  const TaskId reduce = AddCollectives(state, bucket, id, receive);
  if (state.plan.options.synchronize.after_reduce) {
    AddDeviceSynchronize(state);
  }
  ReduceBuffer& buffer = bucket.buffers[bucket.current];
  buffer.last_flush = AddStore(state, bucket, id, receive, reduce);
  buffer.waited = false;
  if (bucket.buffers.size() == 2) {
    bucket.current = 1 - bucket.current;
  }
  bucket.offset = 0;
  ReleaseGradients(state, bucket);
  bucket.calls.clear();
}

/// The slice may still be read by the flush that used this buffer last.
void WaitForBuffer(LowerState& state, ReduceBuffer& buffer) {
  if (buffer.waited) {
    return;
  }
  AddWait(state, StreamRole::kCompute, buffer.last_flush);
  buffer.waited = true;
}

/// Where the next gradient would begin in a bucket, in elements.
std::int64_t NextOffset(const LowerState& state, const ReduceBucket& bucket) {
  const std::int64_t aligned = kTensorAlignment / ElementBytes(bucket.dtype);
  return RoundUp(bucket.offset, state.plan.options.align_tensors ? aligned : 1);
}

/// Puts a gradient into the bucket (DeepCompile's reduceGrad).
void AddToBucket(LowerState& state, ParamId param, BufferId gradient) {
  const DType dtype = state.graph.dtype(param);
  ReduceBucket& bucket = state.buckets[dtype];
  const std::int64_t numel = state.graph.numel(param);
  const std::int64_t elements =
      state.by_parameter() ? GatheredElements(numel, state.plan.ranks) : numel;
  const std::int64_t capacity = bucket.buffers[bucket.current].capacity;
  if (bucket.offset > 0 && NextOffset(state, bucket) + elements > capacity) {
    Flush(state, bucket);
  }
  bucket.offset = NextOffset(state, bucket);
  if (elements > bucket.buffers[bucket.current].capacity) {
    Grow(state, bucket, elements);
  }
  WaitForBuffer(state, bucket.buffers[bucket.current]);
  TaskDraft draft = state.Draft(TaskKind::kReduceGradCopy, StreamRole::kCopy);
  draft.work = MemoryWork(MemoryPattern::kCopy, Bytes(2 * numel * ElementBytes(dtype)), 1, 4,
                          static_cast<std::uint32_t>(param.index()));
  draft.work.offset = bucket.offset;
  draft.waits.push_back(state.builder.last(StreamRole::kCompute));
  draft.Read(gradient);
  draft.Write(bucket.buffers[bucket.current].buffer);
  state.builder.Add(draft);
  bucket.calls.push_back({param, elements, bucket.offset});
  bucket.offset += elements;
}

/// Adds the gradient to the one kept from earlier micro-steps, which stays.
void Accumulate(LowerState& state, ParamId param, BufferId gradient) {
  const Bytes bytes(state.graph.numel(param) * ElementBytes(state.graph.dtype(param)));
  TaskDraft draft = state.Draft(TaskKind::kAccumulate, StreamRole::kCompute);
  draft.work =
      MemoryWork(MemoryPattern::kAdd, bytes * 3, 1, 0, static_cast<std::uint32_t>(param.index()));
  draft.Read(gradient);
  draft.Write(state.accumulated[param.index()]);
  state.builder.Add(draft);
}

/// A hold less on the gradient's storage; the host frees it when nothing else needs it.
void DropHold(LowerState& state, StorageId storage) {
  StorageHold& hold = state.holds[storage.index()];
  --hold.reductions;
  if (hold.reductions == 0 && hold.ops_done) {
    TaskDraft draft = state.Draft(TaskKind::kFree);
    FreeStorage(state, storage, draft);
    state.builder.Add(draft);
  }
}

}  // namespace

TakenGradient TakeGradient(LowerState& state, ParamId param, const Value& value) {
  const BufferId gradient = state.buffer_of[value.storage.index()];
  if (value.is_contiguous() && state.holds[value.storage.index()].sharers == 1) {
    return {gradient, value.storage};
  }
  const Bytes bytes = value.bytes();
  Buffer buffer;
  buffer.bytes = bytes;
  buffer.subject = static_cast<std::uint32_t>(value.storage.index());
  buffer.buffer_class = BufferClass::kGradient;
  if (state.eager() && state.plan.options.stage == 3) {
    buffer.recorded_streams = StreamBit(StreamRole::kReduce);
  }
  const BufferId copy = state.builder.AddBuffer(buffer);
  TaskDraft draft = state.Draft(TaskKind::kMakeContiguous, StreamRole::kCompute);
  draft.work =
      MemoryWork(MemoryPattern::kCopy, bytes * 2, 1, 0, static_cast<std::uint32_t>(param.index()));
  draft.Allocate(copy);
  draft.Read(gradient);
  draft.Write(copy);
  state.builder.Add(draft);
  DropHold(state, value.storage);
  return {copy, StorageId::None()};
}

void FreeGradient(LowerState& state, const TakenGradient& gradient, TaskDraft& draft) {
  if (gradient.storage.is_none()) {
    draft.Free(gradient.buffer);
    return;
  }
  StorageHold& hold = state.holds[gradient.storage.index()];
  --hold.reductions;
  if (hold.reductions == 0 && hold.ops_done) {
    FreeStorage(state, gradient.storage, draft);
  }
}

void FreeGradients(LowerState& state, std::vector<TakenGradient>& gradients, TaskDraft& draft) {
  for (const TakenGradient& gradient : gradients) {
    FreeGradient(state, gradient, draft);
  }
  gradients.clear();
}

namespace {

/// The bucket of a parameter's dtype, with its buffers.
ReduceBucket& OpenBucket(LowerState& state, ParamId param) {
  ReduceBucket& bucket = state.buckets[state.graph.dtype(param)];
  bucket.dtype = state.graph.dtype(param);
  if (bucket.buffers.empty()) {
    AllocateBuffers(state, bucket);
  }
  return bucket;
}

}  // namespace

void AddReduceGradient(LowerState& state, const GraphOutput& gradient) {
  const ParamId param = gradient.param;
  const Value& value = state.graph.value(gradient.value);
  const bool keeps = ReducesBehindBackward(state.plan.options) ||
                     (ReducesOnce(state.plan.options) && !state.boundary());
  BufferId& kept = state.accumulated[param.index()];
  if (!kept.is_none()) {
    Accumulate(state, param, state.buffer_of[value.storage.index()]);
    DropHold(state, value.storage);
  }
  if (keeps) {
    if (state.eager() && state.plan.options.gradient_reduction != GradientReduction::kCoalesced) {
      OpenEagerBucket(state, param);  // its hooks make the buffer all the same
    }
    kept = kept.is_none() ? TakeGradient(state, param, value).buffer : kept;
    return;
  }
  const auto take = [&] {
    return kept.is_none() ? TakeGradient(state, param, value)
                          : TakenGradient{std::exchange(kept, BufferId::None()), {}};
  };
  if (state.eager()) {
    OpenEagerBucket(state, param);
    AddEagerGradient(state, param, take());
    return;
  }
  ReduceBucket& bucket = OpenBucket(state, param);
  const TakenGradient taken = take();
  AddToBucket(state, param, taken.buffer);
  if (!taken.storage.is_none()) {
    bucket.retained_storages.push_back(value.storage);
  } else {
    bucket.retained_buffers.push_back(taken.buffer);
  }
}

void AddKeptGradients(LowerState& state) {
  for (const FlatGroup& group : state.layout.groups()) {
    for (const ParamId param : group.params) {
      BufferId& kept = state.accumulated[param.index()];
      if (!kept.is_none() && state.eager()) {
        OpenEagerBucket(state, param);
        AddEagerGradient(state, param, {kept, StorageId::None()});
        kept = BufferId::None();
      } else if (!kept.is_none()) {
        ReduceBucket& bucket = OpenBucket(state, param);
        AddToBucket(state, param, kept);
        bucket.retained_buffers.push_back(kept);
        kept = BufferId::None();
      }
    }
  }
}

void AddEndBackward(LowerState& state, bool releases_buckets) {
  if (state.eager()) {
    return AddEagerEnd(state, releases_buckets);
  }
  TaskDraft draft = state.Draft(TaskKind::kEndBackward);
  for (auto& [dtype, bucket] : state.buckets) {
    Flush(state, bucket);
  }
  if (const TaskId last = state.builder.last(StreamRole::kReduce); !last.is_none()) {
    draft.waits.push_back(last);
  }
  if (releases_buckets) {
    for (auto& [dtype, bucket] : state.buckets) {
      for (const ReduceBuffer& buffer : bucket.buffers) {
        draft.Free(buffer.buffer);
      }
    }
    state.buckets.clear();
  }
  state.builder.Add(draft);
}

}  // namespace dcsim
