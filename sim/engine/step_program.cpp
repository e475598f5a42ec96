#include "sim/engine/step_program.h"

#include <algorithm>
#include <array>

#include "model/base/error.h"
#include "model/ir/micro_steps.h"

namespace dcsim {
namespace {

/// The wait for a task by its position among those of its stream that are listed so far. A task
/// later in the list is never reached: the wait is kept, and ends in a deadlock.
StreamWait WaitFor(const Schedule& schedule,
                   TaskId waited,
                   std::span<const std::vector<std::uint32_t>> stream_tasks) {
  const Task& task = schedule.task(waited);
  DCSIM_CHECK(!task.on_host()) << "events are recorded on streams";
  const auto& others = stream_tasks[task.stream];
  const auto found = std::lower_bound(others.begin(), others.end(), waited.index());
  const bool earlier = found != others.end() && *found == waited.index();
  return {earlier ? static_cast<std::uint32_t>(found - others.begin()) : StreamWait::kNever,
          task.stream};
}

}  // namespace

StepProgram::StepProgram(const Schedule& schedule, std::span<const WorkCost> costs, int told)
    : stream_tasks_(kStreamCount),
      collective_counts_(kMaxCommunicators),
      costs_(costs) {
  DCSIM_CHECK(costs.size() == schedule.works().size());
  entries_.resize(schedule.task_count() + 1);
  for (const BufferId id : schedule.residents()) {
    if (const TaskId user = schedule.buffer(id).first_user; !user.is_none()) {
      entries_[user.index()].moves_memory = true;
    }
  }
  std::array<std::size_t, kStreamCount> before{};  // tasks of a stream before the period
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    const TaskId id(i);
    const Task& task = schedule.task(id);
    const std::size_t period = task.micro_step / kMicroStepPeriod;
    if (i > 0 && period != schedule.task(TaskId(i - 1)).micro_step / kMicroStepPeriod) {
      std::ranges::transform(stream_tasks_, before.begin(), &std::vector<std::uint32_t>::size);
    }
    TaskEntry& entry = entries_[i];
    entry.work = static_cast<std::uint32_t>(task.work.index());
    entry.stream = task.stream;
    entry.collective = kNoCollective;
    entry.moves_memory = entry.moves_memory || !schedule.memory(id).empty();
    entry.first_wait = static_cast<std::uint32_t>(waits_.size());
    for (const TaskId waited : schedule.waits(id)) {
      waits_.push_back(WaitFor(schedule, waited, stream_tasks_));
    }
    if (task.on_host()) {
      continue;
    }
    auto& own = stream_tasks_[task.stream];
    entry.position = static_cast<std::uint32_t>(own.size() - before[task.stream]);
    own.push_back(static_cast<std::uint32_t>(i));
    const Collective* collective = schedule.FindCollective(id);
    if (collective != nullptr && collective->engine == Engine::kNccl) {
      DCSIM_CHECK(collective->communicator < kMaxCommunicators);
      entry.communicator = collective->communicator;
      entry.collective = collective_counts_[collective->communicator]++;
    }
  }
  entries_.back().first_wait = static_cast<std::uint32_t>(waits_.size());
  for (const RankWork& other : schedule.rank_works()) {
    if (other.told == told) {
      entries_[other.task.index()].work = static_cast<std::uint32_t>(other.work.index());
    }
  }
}

double StepProgram::bytes_per_task() const {
  double bytes =
      static_cast<double>(entries_.size() * sizeof(TaskEntry) + waits_.size() * sizeof(StreamWait));
  for (const auto& tasks : stream_tasks_) {
    bytes += static_cast<double>(tasks.size() * sizeof(tasks[0]));
  }
  return bytes / static_cast<double>(task_count());
}

}  // namespace dcsim
