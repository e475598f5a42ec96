#include "sim/analysis/settled_memory.h"

#include <set>
#include <vector>

#include "sim/engine/step_memory.h"

namespace dcsim {

AllocatorStats SettledMemory(const Schedule& schedule,
                             AllocatorConfig config,
                             const FirstSteps& steps) {
  config.capacity = kMaxCapacity;
  StepMemory memory(schedule, config);
  constexpr auto kDone = StepMemory::Status::kDone;
  if (memory.AllocateResidents() != kDone) {
    return memory.stats();
  }
  const std::uint32_t end = steps.measured ? steps.warmup + *steps.measured : kMostSteps;
  std::set<std::vector<std::uint64_t>> layouts;
  for (std::uint32_t step = 0; step < end; ++step) {
    if (step == steps.warmup) {
      memory.ResetPeaks();
    }
    for (std::size_t task = 0; task < schedule.task_count(); ++task) {
      if (memory.Run(TaskId(task), step, StreamProgress()) != kDone) {
        return memory.stats();
      }
    }
    if (step + 1 >= steps.warmup && !layouts.insert(memory.Layout()).second) {
      break;
    }
  }
  return memory.stats();
}

}  // namespace dcsim
