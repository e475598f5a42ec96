#include "tests/sim/reference_times.h"

#include <algorithm>
#include <map>

namespace dcsim {
namespace {

/// What the recurrence has come to.
struct Frontier {
  std::int64_t host = 0;
  std::map<int, std::int64_t> streams;        // end of the last task
  std::map<int, std::int64_t> communicators;  // end of the last collective
};

Interval NextTask(const Schedule& schedule,
                  TaskId id,
                  const WorkCost& cost,
                  const std::vector<Interval>& before,
                  Frontier& frontier) {
  std::int64_t ready = 0;
  for (const TaskId waited : schedule.waits(id)) {
    ready = std::max(ready, before[waited.index()].end);
  }
  const Task& task = schedule.task(id);
  if (task.on_host()) {
    frontier.host = std::max(frontier.host, ready) + cost.host.ns();
    return {frontier.host, frontier.host};
  }
  const std::int64_t issued = frontier.host + (cost.host - cost.further).ns();
  frontier.host += cost.host.ns();
  std::int64_t& stream = frontier.streams[task.stream];
  std::int64_t start = std::max({issued, ready, stream});
  const Collective* collective = schedule.FindCollective(id);
  const bool queues = collective != nullptr && collective->engine == Engine::kNccl;
  if (queues) {
    start = std::max(start, frontier.communicators[collective->communicator]);
  }
  const std::int64_t end = start + cost.device.ns();
  stream = end;
  if (queues) {
    frontier.communicators[collective->communicator] = end;
  }
  return {start, end};
}

std::uint32_t HostNode(std::size_t task) {
  return static_cast<std::uint32_t>(3 * task);
}
std::uint32_t FurtherNode(std::size_t task) {
  return static_cast<std::uint32_t>(3 * task + 1);
}
std::uint32_t StreamNode(std::size_t task) {
  return static_cast<std::uint32_t>(3 * task + 2);
}

}  // namespace

std::vector<std::vector<Interval>> ReferenceTimes(const Schedule& schedule,
                                                  std::span<const WorkCost> costs,
                                                  std::uint32_t steps) {
  std::vector<std::vector<Interval>> all;
  Frontier frontier;
  for (std::uint32_t step = 0; step < steps; ++step) {
    std::vector<Interval>& tasks = all.emplace_back();
    for (std::size_t i = 0; i < schedule.task_count(); ++i) {
      const TaskId id(i);
      const WorkCost& cost = costs[schedule.task(id).work.index()];
      tasks.push_back(NextTask(schedule, id, cost, tasks, frontier));
    }
  }
  return all;
}

StepGraph GraphOfStep(const Schedule& schedule, std::span<const WorkCost> costs) {
  StepGraph graph;
  graph.edges.node_count = 3 * schedule.task_count();
  graph.times.resize(graph.edges.node_count);
  std::map<int, std::size_t> last_on_stream;
  std::map<int, std::size_t> last_on_communicator;
  const auto chain = [&](std::map<int, std::size_t>& last, int key, std::size_t task) {
    if (const auto found = last.find(key); found != last.end()) {
      graph.edges.edges.emplace_back(StreamNode(found->second), StreamNode(task));
    }
    last[key] = task;
  };
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    const TaskId id(i);
    const Task& task = schedule.task(id);
    const WorkCost& cost = costs[task.work.index()];
    graph.times[HostNode(i)] = cost.host - cost.further;
    graph.times[FurtherNode(i)] = cost.further;
    graph.edges.edges.emplace_back(HostNode(i), StreamNode(i));
    graph.edges.edges.emplace_back(HostNode(i), FurtherNode(i));
    if (i > 0) {
      graph.edges.edges.emplace_back(FurtherNode(i - 1), HostNode(i));
    }
    for (const TaskId waited : schedule.waits(id)) {
      graph.edges.edges.emplace_back(StreamNode(waited.index()),
                                     task.on_host() ? HostNode(i) : StreamNode(i));
    }
    if (!task.on_host()) {
      graph.times[StreamNode(i)] = costs[task.work.index()].device;
      chain(last_on_stream, task.stream, i);
      const Collective* collective = schedule.FindCollective(id);
      if (collective != nullptr && collective->engine == Engine::kNccl) {
        chain(last_on_communicator, collective->communicator, i);
      }
    }
  }
  return graph;
}

}  // namespace dcsim
