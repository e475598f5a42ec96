#include "sim/analysis/first_steps.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace dcsim {

bool MemoryFollowsTime(const Schedule& schedule) {
  return std::ranges::any_of(schedule.buffers(),
                             [](const Buffer& buffer) { return buffer.recorded_streams != 0; });
}

std::vector<Duration> FirstCalls(const Schedule& schedule,
                                 const Graph& graph,
                                 const HostCosts& host) {
  std::vector<Duration> calls;
  calls.reserve(schedule.task_count());
  std::unordered_set<std::string_view> operators;
  std::unordered_set<TaskKind> kinds;
  bool communicates = false;
  for (const Task& task : schedule.tasks()) {
    const Work& work = schedule.work(task.work);
    Duration longer;
    if (work.kind == Work::Kind::kOp) {
      const bool first = operators.insert(graph.target(OpId(work.subject))).second;
      longer = first ? host.first_call : Duration();
    } else if (work.kind == Work::Kind::kCollective) {
      longer = communicates ? Duration() : host.first_collective * schedule.ranks();
      communicates = true;
    } else if (work.kind == Work::Kind::kMemory) {
      longer = kinds.insert(task.kind).second ? host.first_call : Duration();
    }
    calls.push_back(longer);
  }
  return calls;
}

SimulationOptions FromTheFirst(const FirstSteps& steps,
                               const Schedule& schedule,
                               const Graph& graph,
                               const HostCosts& host,
                               SimulationOptions options) {
  if (steps.modules_load) {
    options.first_calls = FirstCalls(schedule, graph, host);
  }
  options.awaited_steps = steps.awaited;
  options.warmup_steps = steps.warmup;
  options.measured_steps = steps.measured.value_or(1);
  return options;
}

}  // namespace dcsim
