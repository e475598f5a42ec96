#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/cost/work_cost.h"
#include "model/ir/schedule.h"

namespace dcsim {

/// A wait that the engine can check without a look at the waited task: its stream must have ended
/// `position + 1` tasks of the step.
struct StreamWait {
  std::uint32_t position = 0;
  std::uint8_t stream = 0;

  static constexpr std::uint32_t kNever = UINT32_MAX;  // for a task that is issued later
};

/// One rank's schedule laid out for the engine: tasks by stream, waits as positions, times by task.
/// Immutable while it runs.
class StepProgram {
 public:
  /// `told`: the rank, among those that the schedule tells of; beyond them as the first.
  StepProgram(const Schedule& schedule, std::span<const WorkCost> costs, int told = 0);

  struct TaskEntry {
    std::uint32_t work = 0;
    std::uint32_t position = 0;    // on its stream, within kMicroStepPeriod
    std::uint32_t collective = 0;  // on its communicator, within the step; kNoCollective: none
    std::uint32_t first_wait = 0;
    std::uint8_t stream = 0;  // Task::kNoStream: host
    std::uint8_t communicator = 0;
    bool moves_memory = false;
  };
  static constexpr std::uint32_t kNoCollective = UINT32_MAX;
  static constexpr std::size_t kMaxCommunicators = 4;

  std::size_t task_count() const { return entries_.size() - 1; }
  const TaskEntry& entry(std::size_t task) const { return entries_[task]; }
  std::span<const StreamWait> waits(std::size_t task) const {
    const std::size_t begin = entries_[task].first_wait;
    return std::span(waits_).subspan(begin, entries_[task + 1].first_wait - begin);
  }
  const WorkCost& cost(std::size_t task) const { return costs_[entries_[task].work]; }
  /// Task ids on a stream, in order.
  std::span<const std::uint32_t> stream_tasks(std::size_t stream) const {
    return stream_tasks_[stream];
  }
  std::uint32_t collectives_on(std::size_t communicator) const {
    return collective_counts_[communicator];
  }
  std::size_t stream_count() const { return stream_tasks_.size(); }

  /// Bytes held, per task.
  double bytes_per_task() const;

 private:
  std::vector<TaskEntry> entries_;  // one more than tasks, for the end of the last waits
  std::vector<StreamWait> waits_;
  std::vector<std::vector<std::uint32_t>> stream_tasks_;
  std::vector<std::uint32_t> collective_counts_;
  std::span<const WorkCost> costs_;
};

}  // namespace dcsim
