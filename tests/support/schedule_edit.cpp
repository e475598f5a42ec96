#include "tests/support/schedule_edit.h"

#include <gtest/gtest.h>

namespace dcsim {

std::vector<EditableTask> TakeApart(const Schedule& schedule) {
  std::vector<EditableTask> tasks;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    const TaskId id(i);
    const Task& task = schedule.task(id);
    TaskDraft draft;
    draft.kind = task.kind;
    draft.micro_step = task.micro_step;
    draft.work = schedule.work(task.work);
    if (!task.on_host()) {
      draft.stream = static_cast<StreamRole>(task.stream);
    }
    draft.waits.assign(schedule.waits(id).begin(), schedule.waits(id).end());
    draft.memory.assign(schedule.memory(id).begin(), schedule.memory(id).end());
    draft.uses.assign(schedule.uses(id).begin(), schedule.uses(id).end());
    tasks.push_back({id, draft});
  }
  return tasks;
}

Schedule PutTogether(const Schedule& original, const std::vector<EditableTask>& tasks) {
  std::vector<TaskId> moved_to(original.task_count());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    moved_to[tasks[i].original.index()] = TaskId(i);
  }
  ScheduleBuilder builder(original.ranks(), original.options());
  for (const Buffer& buffer : original.buffers()) {
    builder.AddBuffer(buffer);
  }
  for (const Collective& collective : original.collectives()) {
    builder.AddCollective(collective);
  }
  for (const EditableTask& task : tasks) {
    TaskDraft draft = task.draft;
    draft.waits.clear();
    for (const TaskId waited : task.draft.waits) {
      if (!moved_to[waited.index()].is_none()) {
        draft.waits.push_back(moved_to[waited.index()]);
      }
    }
    builder.Add(draft);
  }
  return std::move(builder).Build();
}

TaskId NthTask(const Schedule& schedule, TaskKind kind, std::size_t index) {
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    if (schedule.task(TaskId(i)).kind == kind && index-- == 0) {
      return TaskId(i);
    }
  }
  ADD_FAILURE() << "the schedule has no such task of kind " << TaskKindName(kind);
  return TaskId::None();
}

}  // namespace dcsim
