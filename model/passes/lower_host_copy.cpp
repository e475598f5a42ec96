#include "model/passes/lower_state.h"

namespace dcsim {

TaskDraft HostCopyDraft(
    const LowerState& state, TaskKind kind, StreamRole stream, Bytes bytes, std::size_t subject) {
  constexpr std::size_t kEvents = 3;  // compute's position, the wait for it, the copy's end
  const bool leaves = kind == TaskKind::kOffload;
  TaskDraft draft = state.Draft(kind, stream);
  draft.work = MemoryWork(leaves ? MemoryPattern::kOffload : MemoryPattern::kReload, bytes, 1,
                          kEvents, static_cast<std::uint32_t>(subject));
  return draft;
}

TaskDraft HostCopyBehindCompute(
    const LowerState& state, TaskKind kind, StreamRole stream, Bytes bytes, std::size_t subject) {
  TaskDraft draft = HostCopyDraft(state, kind, stream, bytes, subject);
  if (const TaskId last = state.builder.last(StreamRole::kCompute); !last.is_none()) {
    draft.waits.push_back(last);
  }
  return draft;
}

void AddFreeBehindCopy(LowerState& state, BufferId buffer) {
  TaskDraft draft = state.Draft(TaskKind::kFree);
  draft.Free(buffer);
  state.builder.Add(draft);
}

void AddCopyInputs(LowerState& state) {
  const Bytes large = Bytes::MiB(1);
  TaskDraft draft = state.Draft(TaskKind::kCopyInputs, StreamRole::kCompute);
  Bytes moved;
  for (const Input& input : state.graph.inputs) {
    moved += state.graph.value(input.value).bytes();
    const BufferId buffer = state.buffer_of[state.graph.storage_of(input.value).index()];
    if (!buffer.is_none()) {
      draft.Write(buffer);
    }
  }
  if (moved >= large) {
    draft.work = MemoryWork(MemoryPattern::kInputs, moved, state.graph.inputs.size(), 0, 0);
    state.builder.Add(draft);
  }
}

}  // namespace dcsim
