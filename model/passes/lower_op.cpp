#include <algorithm>

#include "model/graph/cublas_calls.h"
#include "model/graph/fused_casts.h"
#include "model/passes/lower_state.h"

namespace dcsim {
namespace {

BufferClass ClassOf(const LowerState& state, StorageId storage) {
  const StorageHold& hold = state.holds[storage.index()];
  return hold.sharers > 0 ? BufferClass::kGradient : BufferClass::kActivation;
}

BufferId AddStorageBuffer(LowerState& state, StorageId storage) {
  const std::size_t s = storage.index();
  if (state.is_held[s] && state.boundary()) {
    return state.buffer_of[s] = state.carried[s];
  }
  Buffer buffer;
  buffer.bytes = state.graph.storage(storage).bytes;
  buffer.subject = static_cast<std::uint32_t>(s);
  buffer.buffer_class = state.is_held[s] ? BufferClass::kHeldOutput : ClassOf(state, storage);
  if (buffer.buffer_class == BufferClass::kGradient && state.eager() &&
      state.plan.options.stage == 3) {
    buffer.recorded_streams = StreamBit(StreamRole::kReduce);  // which copies from it
  }
  if (!state.activations[s].host.is_none()) {
    buffer.recorded_streams = StreamBit(StreamRole::kOffload);
  }
  const BufferId id = state.builder.AddBuffer(buffer);
  state.buffer_of[s] = id;
  if (state.is_held[s]) {
    state.held_now.push_back(id);
  }
  return id;
}

/// The buffer that holds a value now: a parameter's gathered or flat weights, or its storage's.
/// None() for storages of no bytes.
BufferId BufferOf(LowerState& state, ValueId value) {
  const StorageId storage = state.graph.storage_of(value);
  const ParamId param = state.facts.param_of[storage.index()];
  if (param.is_none()) {
    return state.buffer_of[storage.index()];
  }
  return state.plan.options.stage == 3 ? state.gathered[param.index()]
                                       : state.flat_of(param).weights;
}

/// A block of an op's footprint as a buffer: of an output that lives on, or temporary.
BufferId AddFootprintBlock(LowerState& state, const Op& op, const FootprintStep& step) {
  if (step.output >= 0) {
    const ValueId output = op.outputs[static_cast<std::size_t>(step.output)];
    const StorageId storage = output.is_none() ? StorageId::None() : state.graph.storage_of(output);
    if (!storage.is_none() && state.buffer_of[storage.index()].is_none() &&
        state.graph.storage(storage).bytes > Bytes(0)) {
      return AddStorageBuffer(state, storage);
    }
  }
  Buffer temporary;
  temporary.bytes = step.bytes;
  temporary.buffer_class = BufferClass::kTemporary;
  return state.builder.AddBuffer(temporary);
}

/// The op's own allocator calls as profiled. What it neither frees nor returns goes when it is
/// done.
void AddFootprint(LowerState& state, const Op& op, const OpProfile& profile, TaskDraft& draft) {
  std::vector<BufferId> blocks;
  std::vector<bool> leftover;
  for (const FootprintStep& step : profile.footprint) {
    if (step.kind == FootprintStep::Kind::kFree) {
      draft.Free(blocks[step.block]);
      leftover[step.block] = false;
      continue;
    }
    blocks.push_back(AddFootprintBlock(state, op, step));
    const bool temporary =
        state.builder.buffer(blocks.back()).buffer_class == BufferClass::kTemporary;
    leftover.push_back(temporary);
    draft.Allocate(blocks.back());
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (leftover[i]) {
      draft.Free(blocks[i]);
    }
  }
}

/// Without a profile, an op allocates its outputs in order and nothing else.
void AddOpMemory(LowerState& state, OpId id, TaskDraft& draft) {
  const OpProfile* profile = state.ops.Find(id).entry;
  if (profile != nullptr) {
    AddFootprint(state, state.graph.op(id), *profile, draft);
  }
  for (const StorageId storage : state.facts.allocates[id.index()]) {
    const bool missing = state.buffer_of[storage.index()].is_none();
    if (missing && state.graph.storage(storage).bytes > Bytes(0)) {
      draft.Allocate(AddStorageBuffer(state, storage));
    }
  }
}

void AddOpUses(LowerState& state, const Op& op, TaskDraft& draft) {
  const auto add = [&](ValueId value, bool writes) {
    const BufferId buffer = value.is_none() ? BufferId::None() : BufferOf(state, value);
    const bool seen = std::any_of(draft.uses.begin(), draft.uses.end(), [&](const BufferUse& use) {
      return use.buffer == buffer && (use.writes || !writes);
    });
    if (!buffer.is_none() && !seen) {
      draft.uses.push_back({buffer, writes});
    }
  };
  for (const ValueId input : op.inputs) {
    add(input, false);
  }
  for (const ValueId output : op.outputs) {
    add(output, true);
  }
  if (op.launch) {
    for (const ValueBytes& write : op.launch->writes) {
      add(write.value, true);
    }
  }
}

/// The op of `task` is the first that asks for these blocks.
void AddWorkspaces(LowerState& state, TaskId task, std::vector<Bytes>& blocks) {
  for (const Bytes bytes : blocks) {
    Buffer buffer;
    buffer.bytes = bytes;
    buffer.buffer_class = BufferClass::kWorkspace;
    buffer.resident = true;
    buffer.first_user = task;
    state.builder.AddBuffer(buffer);
  }
  blocks.clear();
}

/// cuBLASLt's calls go through cuBLAS's handle, which has its workspace before them.
void AddNewWorkspaces(LowerState& state, TaskId task, OpId id) {
  if (!state.workspaces.of_products.empty() && CallsCublas(state.graph, id)) {
    AddWorkspaces(state, task, state.workspaces.of_products);
  }
  if (!state.workspaces.of_biases.empty() && AddsBias(state.graph, id)) {
    AddWorkspaces(state, task, state.workspaces.of_biases);
  }
}

}  // namespace

void FreeStorage(LowerState& state, StorageId storage, TaskDraft& draft) {
  BufferId& buffer = state.buffer_of[storage.index()];
  if (!buffer.is_none()) {
    draft.Free(buffer);
    buffer = BufferId::None();
  }
}

void AddOp(LowerState& state, OpId id, const std::vector<StorageId>& dying) {
  if (IsFusedCast(state.graph, state.facts, id)) {
    return;  // nothing is left to do, and nothing ends here
  }
  const bool view = state.facts.is_view[id.index()];
  TaskDraft draft = state.Draft(TaskKind::kCompute);
  draft.work.kind = Work::Kind::kOp;
  draft.work.subject = static_cast<std::uint32_t>(id.index());
  if (!view) {
    draft.stream = StreamRole::kCompute;
    AddOpMemory(state, id, draft);
    AddOpUses(state, state.graph.op(id), draft);
  }
  for (const StorageId storage : dying) {
    StorageHold& hold = state.holds[storage.index()];
    hold.ops_done = true;
    const bool reloaded = !state.activations[storage.index()].device.is_none();
    if (hold.reductions == 0 && !reloaded) {
      FreeStorage(state, storage, draft);
    }
  }
  AddNewWorkspaces(state, state.builder.Add(draft), id);
}

void AddTangents(LowerState& state, const Subgraph& subgraph) {
  TaskDraft draft = state.Draft(TaskKind::kSetTangents, StreamRole::kCompute);
  Bytes moved;
  for (const GraphInput& input : subgraph.inputs) {
    const StorageId storage = state.graph.storage_of(input.value);
    const Bytes bytes = state.graph.storage(storage).bytes;
    const bool wanted = state.is_used[storage.index()] || state.holds[storage.index()].sharers > 0;
    if (input.kind == GraphInputKind::kTangent && wanted && bytes > Bytes(0) &&
        state.buffer_of[storage.index()].is_none()) {
      const BufferId buffer = AddStorageBuffer(state, storage);
      draft.Allocate(buffer);
      draft.Write(buffer);
      moved += bytes;
    }
  }
  if (!draft.memory.empty()) {
    draft.work = MemoryWork(MemoryPattern::kFill, moved, draft.memory.size(), 0, 0);
    state.builder.Add(draft);
  }
}

}  // namespace dcsim
