#include "sim/analysis/settled_memory.h"

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/engine/repeat_finder.h"
#include "sim/engine/step_memory.h"

namespace dcsim {
namespace {

/// A micro-step begins: how many of those that come next are left out, because a stretch repeats.
std::size_t LeaveOut(StepMemory& memory, std::size_t micro_step, RepeatFinder& finder) {
  const MicroSteps& names = finder.micro_steps();
  MicroStepState at;
  at.oldest = micro_step;
  at.newest = micro_step - 1;
  memory.AddState(
      StreamProgress(), [&](BufferId buffer) { return names.NameOf(buffer, micro_step); },
      at.state);
  const auto stretch = finder.Find(std::move(at));
  if (!stretch) {
    return 0;
  }
  memory.LeaveOut(StreamProgress().ended, TaskId(names.first(micro_step + stretch->skipped)),
                  [&](BufferId buffer) { return names.Later(buffer, stretch->skipped); });
  return stretch->skipped;
}

/// Makes the allocator calls of a step; false where no memory serves a request.
bool RunStep(StepMemory& memory,
             std::uint32_t step,
             const Schedule& schedule,
             std::optional<RepeatFinder>& finder) {
  std::size_t micro_step = 0;
  if (finder) {
    finder->BeginStep();
  }
  bool served = true;
  for (std::size_t task = 0; task < schedule.task_count() && served; ++task) {
    if (finder && schedule.task(TaskId(task)).micro_step != micro_step) {
      ++micro_step;
      if (!finder->found()) {
        const std::size_t skipped = LeaveOut(memory, micro_step, *finder);
        task = finder->micro_steps().first(micro_step + skipped);
        micro_step += skipped;
      }
    }
    served = memory.Run(TaskId(task), step, StreamProgress()) == StepMemory::Status::kDone;
  }
  if (finder && micro_step + 1 == finder->micro_steps().count()) {
    finder->EndStep();
  }
  return served;
}

}  // namespace

AllocatorStats SettledMemory(const Schedule& schedule,
                             AllocatorConfig config,
                             const FirstSteps& steps,
                             std::uint32_t* replayed) {
  config.capacity = kMaxCapacity;
  StepMemory memory(schedule, config);
  constexpr auto kDone = StepMemory::Status::kDone;
  if (memory.AllocateResidents() != kDone) {
    return memory.stats();
  }
  const std::uint32_t end = steps.measured ? steps.warmup + *steps.measured : kMostSteps;
  std::optional<RepeatFinder> finder;
  if (schedule.repetition().left_out > 0) {
    finder.emplace(schedule);
  }
  std::set<std::vector<std::int64_t>> layouts;
  for (std::uint32_t step = 0; step < end; ++step) {
    if (step == steps.warmup) {
      memory.ResetPeaks();
    }
    if (replayed != nullptr) {
      *replayed = step + 1;
    }
    if (!RunStep(memory, step, schedule, finder)) {
      return memory.stats();
    }
    std::vector<std::int64_t> layout;
    memory.AddState(
        StreamProgress(), [](BufferId buffer) { return static_cast<std::int64_t>(buffer.index()); },
        layout);
    if (step + 1 >= steps.warmup && !layouts.insert(std::move(layout)).second) {
      break;
    }
  }
  return memory.stats();
}

}  // namespace dcsim
