#pragma once

#include <vector>

#include "model/ir/schedule.h"

namespace dcsim {

/// A task of a schedule that has been taken apart. Waits keep naming tasks by their ids in the
/// original.
struct EditableTask {
  TaskId original;
  TaskDraft draft;
};

/// The tasks of a schedule in issue order, ready to be changed, dropped or moved.
std::vector<EditableTask> TakeApart(const Schedule& schedule);

/// The schedule with these tasks instead of its own. Waits for tasks that are gone vanish.
Schedule PutTogether(const Schedule& original, const std::vector<EditableTask>& tasks);

/// The one task of a kind in a small schedule, or the `index`-th of several. A test failure and
/// None() when there is none.
TaskId NthTask(const Schedule& schedule, TaskKind kind, std::size_t index = 0);

}  // namespace dcsim
