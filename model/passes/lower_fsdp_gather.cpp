#include <algorithm>

#include "model/passes/fsdp_tasks.h"
#include "model/passes/multi_tensor_launches.h"

// FSDP2 of torch 2.11 (torch/distributed/fsdp/_fully_shard): _fsdp_collectives.py is what it
// launches, _fsdp_param_group.py in which order. Its all-gather copy-in stream is the copy stream.

namespace dcsim {
namespace {

/// A parameter whole, as its ops read it.
BufferId AddWholeParam(LowerState& state, ParamId param) {
  const std::int64_t elements =
      state.plan.ranks * FsdpShardElements(state.graph, param, state.plan.ranks);
  const BufferId buffer =
      AddPoolBuffer(state, Bytes(elements * WholeElementBytes(state, param)),
                    BufferClass::kGatheredParameter, StreamRole::kCompute, param);
  state.gathered[param.index()] = buffer;
  return buffer;
}

/// Shards in the dtype in which they are gathered, one behind the other: foreach_copy_ into a
/// tensor of that dtype. None() where they have it already.
BufferId AddCastShards(LowerState& state, const GroupGather& group) {
  const std::int64_t from = ShardElementBytes(state);
  const std::int64_t to = WholeElementBytes(state, group.params.front());
  if (from == to) {
    return BufferId::None();
  }
  const auto sizes = ShardSizes(state, group.params);
  const std::int64_t elements = ShardElementsOf(state, group.params);
  const BufferId cast =
      AddPoolBuffer(state, Bytes(elements * to), BufferClass::kTemporary, StreamRole::kCopy);
  TaskDraft draft = state.Draft(TaskKind::kGatherCopyIn, StreamRole::kCopy);
  draft.work = MemoryWork(CastPattern(from, to), Bytes(elements * (from + to)),
                          MultiTensorLaunches(sizes, 2), 0, group.collective);
  draft.Allocate(cast);
  for (const ParamId param : group.params) {
    draft.Read(state.fsdp.shards[param.index()].weights);
  }
  draft.Write(cast);
  state.builder.Add(draft);
  return cast;
}

/// Shards, or their casts, into the rank's part of what is gathered.
void AddCopyIn(LowerState& state, GroupGather& group, BufferId cast) {
  const std::int64_t bytes = WholeElementBytes(state, group.params.front());
  const auto sizes = ShardSizes(state, group.params);
  const std::int64_t elements = ShardElementsOf(state, group.params);
  group.output = AddPoolBuffer(state, Bytes(elements * bytes * state.plan.ranks),
                               BufferClass::kTemporary, StreamRole::kCopy);
  TaskDraft draft = state.Draft(TaskKind::kGatherCopyIn, StreamRole::kCopy);
  draft.work = MemoryWork(MemoryPattern::kCopy, Bytes(elements * bytes * 2),
                          MultiTensorLaunches(sizes, 2), 0, group.collective);
  draft.Allocate(group.output);
  if (cast.is_none()) {
    for (const ParamId param : group.params) {
      draft.Read(state.fsdp.shards[param.index()].weights);
    }
  } else {
    draft.Read(cast);
  }
  draft.Write(group.output);
  state.builder.Add(draft);
}

/// Both streams of gathers go on behind a copy out of what one has gathered, which is over then.
void AddWaitForCopyOut(LowerState& state, TaskId copy_out) {
  AddWait(state, StreamRole::kCopy, copy_out);
  AddWait(state, StreamRole::kGather, copy_out);
}

/// What the group before came from in the forward goes, once gathers wait for its copy out.
void AddFreeCopiedOut(LowerState& state) {
  FsdpState& fsdp = state.fsdp;
  if (fsdp.copied_out.is_none()) {
    return;
  }
  AddWaitForCopyOut(state, fsdp.copy_out);
  TaskDraft draft = state.Draft(TaskKind::kFree);
  draft.Free(fsdp.copied_out);
  state.builder.Add(draft);
  fsdp.copied_out = BufferId::None();
}

/// All parameters of the group out of what was gathered, each into memory of its own.
void AddCopyOut(LowerState& state, const GroupGather& group, bool forward) {
  if (forward) {
    AddFreeCopiedOut(state);
  }
  TaskDraft draft = state.Draft(TaskKind::kGatherCopyOut, StreamRole::kCompute);
  Bytes bytes;
  draft.Read(group.output);
  for (const ParamId param : group.params) {
    const BufferId whole = AddWholeParam(state, param);
    bytes += state.builder.buffer(whole).bytes;
    draft.Allocate(whole);
    draft.Write(whole);
  }
  // One kernel, and a copy of the addresses that it writes to.
  draft.work = MemoryWork(MemoryPattern::kCopy, bytes * 2, 2, 1, group.collective);
  draft.waits.push_back(group.gather);
  if (!forward) {
    draft.Free(group.output);
  }
  const TaskId copy_out = state.builder.Add(draft);
  if (forward) {
    state.fsdp.copied_out = group.output;
    state.fsdp.copy_out = copy_out;
  } else {
    AddWaitForCopyOut(state, copy_out);
  }
}

/// One rank casts each shard, and copies it.
void AddCopiesOfOneRank(LowerState& state, const GroupGather& group) {
  for (const ParamId param : group.params) {
    const std::int64_t elements = FsdpShardElements(state.graph, param, state.plan.ranks);
    const std::int64_t from = ShardElementBytes(state);
    const std::int64_t to = WholeElementBytes(state, param);
    const std::uint32_t collective =
        AddGroupCollective(state, CollectiveKind::kAllGather, state.graph.dtype(param), {param});
    BufferId source = state.fsdp.shards[param.index()].weights;
    BufferId cast;
    if (from != to) {
      cast =
          AddPoolBuffer(state, Bytes(elements * to), BufferClass::kTemporary, StreamRole::kCompute);
      TaskDraft draft = state.Draft(TaskKind::kGatherCopyIn, StreamRole::kCompute);
      draft.work =
          MemoryWork(CastPattern(from, to), Bytes(elements * (from + to)), 1, 0, collective);
      draft.Allocate(cast);
      draft.Read(source);
      draft.Write(cast);
      state.builder.Add(draft);
      source = cast;
    }
    TaskDraft draft = state.Draft(TaskKind::kGatherCopyOut, StreamRole::kCompute);
    draft.work = MemoryWork(MemoryPattern::kCopy, Bytes(elements * to * 2), 1, 0, collective);
    const BufferId whole = AddWholeParam(state, param);
    draft.Allocate(whole);
    draft.Read(source);
    draft.Write(whole);
    if (!cast.is_none()) {
      draft.Free(cast);
    }
    state.builder.Add(draft);
  }
}

}  // namespace

void AddGroupGather(LowerState& state, const std::vector<ParamId>& params) {
  GroupGather group;
  std::copy_if(params.begin(), params.end(), std::back_inserter(group.params),
               [&](ParamId param) { return !state.is_valid[param.index()]; });
  if (group.params.empty()) {
    return;
  }
  for (const ParamId param : group.params) {
    state.is_valid[param.index()] = true;
  }
  if (state.plan.ranks > 1) {
    const DType dtype = state.graph.dtype(group.params.front());
    group.collective = AddGroupCollective(state, CollectiveKind::kAllGather, dtype, group.params);
    const BufferId cast = AddCastShards(state, group);
    AddCopyIn(state, group, cast);
    TaskDraft draft = state.Draft(TaskKind::kAllGather, StreamRole::kGather);
    draft.work.kind = Work::Kind::kCollective;
    draft.work.subject = group.collective;
    draft.work.events = 3;  // the stream waits for the copy-in, and is waited for
    draft.waits.push_back(state.builder.last(StreamRole::kCopy));
    draft.Write(group.output);
    if (!cast.is_none()) {
      draft.Free(cast);
    }
    group.gather = state.builder.Add(draft);
  }
  state.fsdp.gathers.push_back(std::move(group));
}

void AddGroupWait(LowerState& state, const std::vector<ParamId>& params, bool forward) {
  auto& gathers = state.fsdp.gathers;
  const auto found = std::find_if(gathers.begin(), gathers.end(), [&](const GroupGather& group) {
    return std::find(params.begin(), params.end(), group.params.front()) != params.end();
  });
  if (found == gathers.end()) {
    return;
  }
  const GroupGather group = *found;
  gathers.erase(found);
  if (state.plan.ranks > 1) {
    AddCopyOut(state, group, forward);
  } else {
    AddCopiesOfOneRank(state, group);
  }
}

void AddGroupRelease(LowerState& state, const std::vector<ParamId>& params) {
  TaskDraft draft = state.Draft(TaskKind::kRelease);
  for (const ParamId param : params) {
    BufferId& buffer = state.gathered[param.index()];
    if (!buffer.is_none()) {
      draft.Free(buffer);
      buffer = BufferId::None();
      state.is_valid[param.index()] = false;
    }
  }
  if (!draft.memory.empty()) {
    state.builder.Add(draft);
  }
}

void AddForwardEnd(LowerState& state) {
  AddFreeCopiedOut(state);
}

}  // namespace dcsim
