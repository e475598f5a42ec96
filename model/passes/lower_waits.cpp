#include "model/passes/lower_state.h"

namespace dcsim {

TaskDraft WaitDraft(const LowerState& state, StreamRole stream, TaskId task) {
  TaskDraft draft = state.Draft(TaskKind::kWait, stream);
  draft.work.events = 1;
  draft.waits.push_back(task);
  return draft;
}

void AddWait(LowerState& state, StreamRole stream, TaskId task) {
  state.builder.Add(WaitDraft(state, stream, task));
}

void AddWaitForCompute(LowerState& state, StreamRole stream) {
  const TaskId last = state.builder.last(StreamRole::kCompute);
  if (last.is_none()) {
    return;
  }
  TaskDraft draft = state.Draft(TaskKind::kWait, stream);
  draft.waits.push_back(last);
  state.builder.Add(draft);
}

void AddDeviceSynchronize(LowerState& state) {
  TaskDraft draft = state.Draft(TaskKind::kHostSynchronize);
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    if (const TaskId last = state.builder.last(static_cast<StreamRole>(s)); !last.is_none()) {
      draft.waits.push_back(last);
    }
  }
  state.builder.Add(draft);
}

}  // namespace dcsim
