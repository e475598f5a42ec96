#include <algorithm>

#include "model/passes/check_events.h"
#include "model/passes/fsdp_tasks.h"

// What FSDP2 does behind a group's backward (foreach_reduce in _fsdp_collectives.py, post_backward
// in _fsdp_param_group.py; torch 2.11).

namespace dcsim {
namespace {

/// The compute stream goes on behind the last reduction; what it read goes.
void AddWaitForReduction(LowerState& state) {
  FsdpState& fsdp = state.fsdp;
  if (fsdp.reduction.is_none()) {
    return;
  }
  TaskDraft draft = WaitDraft(state, StreamRole::kCompute, fsdp.reduction);
  draft.Free(fsdp.reduce_input);
  state.builder.Add(draft);
  fsdp.reduction = TaskId::None();
}

/// Gradients of a group, whole, one behind the other, rank by rank (chunk_cat); they go.
void AddReduceCopyIn(LowerState& state,
                     const Subgraph& subgraph,
                     const std::vector<ParamId>& params,
                     std::uint32_t collective,
                     DType dtype) {
  std::vector<TakenGradient> gradients;
  std::int64_t read = 0;
  for (const ParamId param : params) {
    const GraphOutput& output = *FindGradient(subgraph, param);
    gradients.push_back(TakeGradient(state, param, state.graph.value(output.value)));
    read += state.graph.numel(param);
  }
  const std::int64_t own = WholeElementBytes(state, params.front());
  const std::int64_t reduced = ElementBytes(dtype);
  const std::int64_t written = ShardElementsOf(state, params) * state.plan.ranks;
  FsdpState& fsdp = state.fsdp;
  fsdp.reduce_input = AddPoolBuffer(state, Bytes(written * reduced), BufferClass::kReduceBucket,
                                    StreamRole::kCompute);
  TaskDraft draft = state.Draft(TaskKind::kReduceCopyIn, StreamRole::kCompute);
  // One kernel, and a copy of the addresses that it reads.
  draft.work = MemoryWork(CastPattern(own, reduced), Bytes(read * own + written * reduced), 2, 0,
                          collective);
  draft.Allocate(fsdp.reduce_input);
  for (const TakenGradient& gradient : gradients) {
    draft.Read(gradient.buffer);
  }
  draft.Write(fsdp.reduce_input);
  FreeGradients(state, gradients, draft);
  state.builder.Add(draft);
}

/// Reduced gradients in the dtype of the shards.
BufferId AddCastReduced(LowerState& state,
                        const std::vector<ParamId>& params,
                        std::uint32_t collective,
                        DType dtype,
                        BufferId reduced) {
  const std::int64_t from = ElementBytes(dtype);
  const std::int64_t to = ShardElementBytes(state);
  if (from == to) {
    return reduced;
  }
  const std::int64_t elements = ShardElementsOf(state, params);
  const BufferId cast = AddPoolBuffer(state, Bytes(elements * to), BufferClass::kGradientPartition,
                                      StreamRole::kReduce);
  TaskDraft draft = state.Draft(TaskKind::kCastBucket, StreamRole::kReduce);
  draft.work = MemoryWork(CastPattern(from, to), Bytes(elements * (from + to)), 1, 0, collective);
  draft.Allocate(cast);
  draft.Read(reduced);
  draft.Write(cast);
  draft.Free(reduced);
  state.builder.Add(draft);
  return cast;
}

/// Keeps a group's reduced gradients, or adds them to those of micro-steps before.
void Keep(LowerState& state,
          const std::vector<ParamId>& params,
          std::uint32_t collective,
          BufferId reduced) {
  auto& gradients = state.fsdp.gradients;
  const auto kept = std::find_if(gradients.begin(), gradients.end(),
                                 [&](const GroupGradient& each) { return each.params == params; });
  if (kept == gradients.end()) {
    gradients.push_back({params, reduced});
    return;
  }
  const Bytes bytes(ShardElementsOf(state, params) * ShardElementBytes(state));
  TaskDraft draft = state.Draft(TaskKind::kStoreReduced, StreamRole::kReduce);
  draft.work = MemoryWork(MemoryPattern::kAdd, bytes * 3, params.size(), 0, collective);
  draft.Read(reduced);
  draft.Write(kept->buffer);
  draft.Free(reduced);
  state.builder.Add(draft);
}

}  // namespace

void AddGroupReduction(LowerState& state,
                       const Subgraph& subgraph,
                       const std::vector<ParamId>& params) {
  const DType dtype = state.reduction_dtype(state.graph.dtype(params.front()));
  AddWaitForReduction(state);
  const std::uint32_t collective =
      AddGroupCollective(state, CollectiveKind::kReduceScatter, dtype, params);
  AddReduceCopyIn(state, subgraph, params, collective, dtype);
  const BufferId reduced =
      AddPoolBuffer(state, Bytes(ShardElementsOf(state, params) * ElementBytes(dtype)),
                    BufferClass::kGradientPartition, StreamRole::kReduce);
  TaskDraft draft = state.Draft(TaskKind::kReduce, StreamRole::kReduce);
  if (state.plan.ranks == 1) {  // copies, and calls no NCCL
    const Bytes bytes = state.builder.buffer(reduced).bytes;
    draft.work = MemoryWork(MemoryPattern::kCopy, bytes * 2, 1, 0, collective);
  } else {
    draft.work.kind = Work::Kind::kCollective;
    draft.work.subject = collective;
  }
  draft.work.events = 4;  // the stream waits for compute, two are recorded behind the reduction
  draft.waits.push_back(state.builder.last(StreamRole::kCompute));
  draft.Allocate(reduced);
  draft.Read(state.fsdp.reduce_input);
  draft.Write(reduced);
  state.fsdp.reduction = state.builder.Add(draft);
  Keep(state, params, collective, AddCastReduced(state, params, collective, dtype, reduced));
}

void AddGroupsEnd(LowerState& state) {
  AddWaitForReduction(state);
  if (const TaskId last = state.builder.last(StreamRole::kReduce); !last.is_none()) {
    AddWait(state, StreamRole::kCompute, last);
  }
}

}  // namespace dcsim
