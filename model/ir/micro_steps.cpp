#include "model/ir/micro_steps.h"

#include <algorithm>
#include <array>

namespace dcsim {

MicroSteps::MicroSteps(const Schedule& schedule)
    : schedule_(schedule),
      births_(schedule.buffers().size()) {
  std::vector<bool> born(births_.size());
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    const TaskId id(i);
    if (firsts_.empty() ||
        schedule.task(id).micro_step != schedule.task(TaskId(i - 1)).micro_step) {
      firsts_.push_back(i);
      born_.emplace_back();
    }
    for (const MemoryStep& step : schedule.memory(id)) {
      const std::size_t buffer = step.buffer.index();
      const Buffer& of = schedule.buffer(step.buffer);
      if (!step.frees && !born[buffer] && !of.resident && !of.carried) {
        born[buffer] = true;
        births_[buffer] = {static_cast<std::uint32_t>(born_.size() - 1),
                           static_cast<std::uint32_t>(born_.back().size())};
        born_.back().push_back(step.buffer);
      }
    }
  }
}

std::int64_t MicroSteps::NameOf(TaskId task, std::size_t from) const {
  constexpr std::int64_t kFar = std::int64_t{1} << 40;  // further than any distance
  const auto index = static_cast<std::int64_t>(task.index());
  const bool of_first = count() < 2 || task.index() < first(1);
  return of_first ? kFar + index : index - static_cast<std::int64_t>(first(from));
}

std::vector<std::int64_t> MicroSteps::ShapeOf(std::size_t micro_step) const {
  std::vector<std::int64_t> shape;
  const auto add = [&shape](auto number) { shape.push_back(static_cast<std::int64_t>(number)); };
  for (std::size_t i = first(micro_step); i < end(micro_step); ++i) {
    const TaskId id(i);
    const Task& task = schedule_.task(id);
    for (const auto number :
         {static_cast<std::size_t>(task.kind), std::size_t{task.stream}, task.work.index(),
          schedule_.waits(id).size(), schedule_.memory(id).size(), schedule_.uses(id).size()}) {
      add(number);
    }
    for (const TaskId waited : schedule_.waits(id)) {
      add(NameOf(waited, micro_step));
    }
    for (const MemoryStep& step : schedule_.memory(id)) {
      add(NameOf(step.buffer, micro_step));
      add(step.frees);
      const Buffer& buffer = schedule_.buffer(step.buffer);
      add(buffer.bytes.count());
      add(buffer.pool);
      add(buffer.recorded_streams);
      add(static_cast<std::size_t>(buffer.buffer_class));
    }
    for (const BufferUse& use : schedule_.uses(id)) {
      add(NameOf(use.buffer, micro_step));
      add(use.writes);
    }
  }
  for (const RankWork& other : schedule_.rank_works()) {
    if (schedule_.task(other.task).micro_step == micro_step) {
      add(NameOf(other.task, micro_step));
      add(other.told);
      add(other.work.index());
    }
  }
  return shape;
}

std::optional<Repetition> FindRepetition(const Schedule& schedule, std::uint32_t left_out) {
  const MicroSteps steps(schedule);
  std::vector<std::vector<std::int64_t>> shapes;  // of all but the last
  for (std::size_t i = 0; i + 1 < steps.count(); ++i) {
    shapes.push_back(steps.ShapeOf(i));
  }
  for (const std::uint32_t period : {1U, 2U, kMicroStepPeriod}) {
    std::size_t from = shapes.size();
    while (from > period && shapes[from - 1] == shapes[from - 1 - period]) {
      --from;
    }
    const std::size_t first = from - std::min<std::size_t>(from, period);
    if (left_out % period == 0 && from < shapes.size()) {
      return Repetition{left_out, period, static_cast<std::uint32_t>(first)};
    }
  }
  return std::nullopt;
}

std::vector<std::int64_t> TimesInStep(const Schedule& schedule) {
  const Repetition& repetition = schedule.repetition();
  const std::uint32_t last = schedule.tasks().empty() ? 0 : schedule.tasks().back().micro_step;
  std::vector<std::int64_t> times(schedule.works().size());
  for (const Task& task : schedule.tasks()) {
    const bool repeats = task.micro_step < last && task.micro_step + repetition.period >= last;
    times[task.work.index()] += 1 + (repeats ? repetition.left_out / repetition.period : 0);
  }
  return times;
}

}  // namespace dcsim
