#include "tools/common/beside.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace dcsim {
namespace {

/// A stretch in which one stream works.
struct Stretch {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

/// Time in [from, to) that stretches cover, each once.
std::int64_t Covered(std::vector<Stretch> stretches, std::int64_t from, std::int64_t to) {
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.start < b.start; });
  std::int64_t covered = 0;
  std::int64_t at = from;
  for (const Stretch& each : stretches) {
    const std::int64_t start = std::max(at, each.start);
    const std::int64_t end = std::min(to, each.end);
    if (end > start) {
      covered += end - start;
      at = end;
    }
  }
  return covered;
}

/// What one step's stretches leave.
struct Left {
  std::int64_t exposed = 0;
  std::int64_t idle = 0;
};

/// Stretches of one step, collectives apart from everything else.
struct Stretches {
  std::vector<Stretch> collectives;
  std::vector<Stretch> rest;

  void Add(WorkClass work_class, std::int64_t start, std::int64_t end) {
    (work_class == WorkClass::kCollectives ? collectives : rest).push_back({start, end});
  }
  Left LeftIn(std::int64_t from, std::int64_t to) const {
    std::vector<Stretch> all = rest;
    all.insert(all.end(), collectives.begin(), collectives.end());
    const std::int64_t busy = Covered(std::move(all), from, to);
    return {busy - Covered(rest, from, to), (to - from) - busy};
  }
};

constexpr std::int64_t kMain = -1;

/// What groups are told apart by.
struct GroupKey {
  WorkClass work_class = WorkClass::kOther;
  std::int64_t stream = kMain;  // kMain: the one with most work
  std::string name;
  bool op = false;  // an operator of the graph, of a class without names

  auto operator<=>(const GroupKey&) const = default;
  bool main() const { return stream == kMain; }
};

struct Group {
  WorkAmount amount;
  std::int64_t first = 0;  // start of its first kernel, within the step
};

using Groups = std::map<GroupKey, Group>;

GroupKey KeyOf(WorkClass work_class, std::int64_t stream, std::string name, bool op = false) {
  // What has a name is found by it, whatever stream it is on.
  if (GroupsHaveNames(work_class)) {
    return {work_class, kMain, std::move(name)};
  }
  return {work_class, stream, std::move(name), op};
}

void AddTo(Groups& groups, const GroupKey& key, const WorkAmount& amount, std::int64_t start) {
  const auto [place, is_new] = groups.emplace(key, Group{{}, start});
  Group& group = place->second;
  group.amount.time += amount.time;
  group.amount.launches += amount.launches;
  group.first = std::min(group.first, start);
}

std::int64_t MainStream(const TracedStep& step) {
  std::map<std::int64_t, std::int64_t> busy;
  for (const TracedEvent& event : step.events) {
    busy[event.stream] += (event.end - event.start).ns();
  }
  return std::max_element(busy.begin(), busy.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

/// Sums over all steps of the trace.
struct Traced {
  std::array<WorkAmount, kWorkClasses> classes;
  Groups groups;
  std::int64_t time = 0;
  Left left;
};

Traced SumOf(const KinetoTrace& trace) {
  Traced sum;
  for (const TracedStep& step : trace.steps) {
    const std::int64_t main = MainStream(step);
    Stretches stretches;
    for (const TracedEvent& event : step.events) {
      const std::string& name = trace.names[event.name];
      const WorkClass work_class = ClassOfEvent(event.kind, name);
      const WorkAmount amount{event.end - event.start, 1};
      WorkAmount& of_class = sum.classes[static_cast<std::size_t>(work_class)];
      of_class.time += amount.time;
      of_class.launches += 1;
      AddTo(sum.groups,
            KeyOf(work_class, event.stream == main ? kMain : event.stream,
                  GroupOfEvent(work_class, name)),
            amount, (event.start - step.start).ns());
      stretches.Add(work_class, event.start.ns(), event.end.ns());
    }
    const Left left = stretches.LeftIn(step.start.ns(), step.end.ns());
    sum.left.exposed += left.exposed;
    sum.left.idle += left.idle;
    sum.time += (step.end - step.start).ns();
  }
  return sum;
}

Duration Mean(std::int64_t ns, std::size_t steps) {
  return Duration::FromNs(std::llround(static_cast<double>(ns) / static_cast<double>(steps)));
}

WorkAmount Mean(const WorkAmount& sum, std::size_t steps) {
  return {Mean(sum.time.ns(), steps), sum.launches / static_cast<double>(steps)};
}

/// The predicted step, as the trace would show it.
struct Forecast {
  std::array<WorkAmount, kWorkClasses> classes;
  Groups groups;
  Left left;
};

/// Class and group of tasks. Those that ask the same of the device, by one kind of task, share
/// them.
class TaskNames {
 public:
  TaskNames(const Schedule& schedule, const Graph& graph) : schedule_(schedule), graph_(graph) {}

  const GroupKey& Of(TaskId id) {
    const Task& task = schedule_.task(id);
    const auto [place, is_new] =
        keys_.try_emplace(std::tuple(task.kind, task.work.index(), task.stream), GroupKey());
    if (is_new) {
      const bool main = task.stream == static_cast<std::uint8_t>(StreamRole::kCompute);
      place->second = KeyOf(
          ClassOfTask(schedule_, graph_, id), main ? kMain : std::int64_t{task.stream},
          GroupOfTask(schedule_, graph_, id), schedule_.work(task.work).kind == Work::Kind::kOp);
    }
    return place->second;
  }

 private:
  const Schedule& schedule_;
  const Graph& graph_;
  std::map<std::tuple<TaskKind, std::size_t, std::uint8_t>, GroupKey> keys_;
};

Forecast ForecastOf(const PredictedTasks& predicted) {
  Forecast sum;
  TaskNames names(predicted.schedule, predicted.graph);
  Stretches stretches;
  for (const KernelSpan& span : predicted.kernels) {
    const WorkCost& cost = predicted.costs[predicted.schedule.task(span.task).work.index()];
    const GroupKey& key = names.Of(span.task);
    const WorkAmount amount{span.end - span.start - span.gaps, static_cast<double>(cost.launches)};
    WorkAmount& of_class = sum.classes[static_cast<std::size_t>(key.work_class)];
    of_class.time += amount.time;
    of_class.launches += amount.launches;
    AddTo(sum.groups, key, amount, span.start.ns());
    // Where in a task its gaps are does not matter to sums.
    stretches.Add(key.work_class, span.start.ns(), (span.start + amount.time).ns());
  }
  sum.left = stretches.LeftIn(0, predicted.result.step_time.ns());
  return sum;
}

BesideTask TaskOf(const GroupKey& key,
                  const std::pair<const GroupKey, Group>* traced,
                  const std::pair<const GroupKey, Group>* forecast) {
  BesideTask task;
  task.work_class = key.work_class;
  if (traced != nullptr) {
    task.kernel = traced->first.name;
    task.measured = traced->second.amount;
  }
  if (forecast != nullptr) {
    task.task = forecast->first.name;
    task.predicted = forecast->second.amount;
  }
  return task;
}

using Unpaired = std::vector<const std::pair<const GroupKey, Group>*>;

Unpaired ByFirstStart(Unpaired groups) {
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto* a, const auto* b) { return a->second.first < b->second.first; });
  return groups;
}

/// Whether two groups without a name that both know may be one. Which kernels an operator has
/// launched nothing tells.
bool AreAlike(const std::pair<const GroupKey, Group>& a,
              const std::pair<const GroupKey, Group>& b) {
  return a.first.work_class == b.first.work_class && a.first.main() == b.first.main() &&
         a.first.op == b.first.op && a.second.amount.launches == b.second.amount.launches;
}

/// Groups without a name that both sides know, by first start.
struct Nameless {
  Unpaired traced;
  Unpaired forecast;

  /// Whether as many are like this one on both sides. What is launched once is like too much else.
  bool HavePartners(const std::pair<const GroupKey, Group>& group) const {
    const auto alike = [&group](const auto* each) { return AreAlike(*each, group); };
    return group.second.amount.launches > 1 &&
           std::count_if(traced.begin(), traced.end(), alike) ==
               std::count_if(forecast.begin(), forecast.end(), alike);
  }
};

/// Adds them to `tasks`, in pairs where they have partners.
void AddNameless(const Nameless& groups, std::vector<BesideTask>& tasks) {
  Unpaired left = groups.forecast;
  for (const auto* group : groups.traced) {
    const auto partner = std::find_if(left.begin(), left.end(), [&](const auto* each) {
      return AreAlike(*each, *group) && groups.HavePartners(*group);
    });
    const bool found = partner != left.end();
    tasks.push_back(TaskOf(group->first, group, found ? *partner : nullptr));
    if (found) {
      left.erase(partner);
    }
  }
  for (const auto* group : left) {
    tasks.push_back(TaskOf(group->first, nullptr, group));
  }
}

/// Groups of both sides in pairs, and alone where there is no other.
std::vector<BesideTask> Pair(const Groups& traced, const Groups& forecast) {
  std::vector<BesideTask> tasks;
  Nameless nameless;
  for (const auto& group : traced) {
    if (!GroupsHaveNames(group.first.work_class)) {
      nameless.traced.push_back(&group);
      continue;
    }
    const auto same = forecast.find(group.first);
    tasks.push_back(TaskOf(group.first, &group, same == forecast.end() ? nullptr : &*same));
  }
  for (const auto& group : forecast) {
    if (!GroupsHaveNames(group.first.work_class)) {
      nameless.forecast.push_back(&group);
    } else if (!traced.contains(group.first)) {
      tasks.push_back(TaskOf(group.first, nullptr, &group));
    }
  }
  nameless.traced = ByFirstStart(std::move(nameless.traced));
  nameless.forecast = ByFirstStart(std::move(nameless.forecast));
  AddNameless(nameless, tasks);
  return tasks;
}

}  // namespace

Beside CompareBeside(const KinetoTrace& trace, const PredictedTasks& predicted) {
  const std::size_t steps = trace.steps.size();
  Traced traced = SumOf(trace);
  for (auto& [key, group] : traced.groups) {
    group.amount = Mean(group.amount, steps);
  }
  const Forecast forecast = ForecastOf(predicted);
  Beside beside;
  beside.file = trace.file;
  for (const TracedStep& step : trace.steps) {
    if (step.number) {
      beside.steps.push_back(*step.number);
    }
  }
  beside.step = {Mean(traced.time, steps), predicted.result.step_time};
  beside.exposed = {Mean(traced.left.exposed, steps), Duration::FromNs(forecast.left.exposed)};
  beside.idle = {Mean(traced.left.idle, steps), Duration::FromNs(forecast.left.idle)};
  for (std::size_t i = 0; i < kWorkClasses; ++i) {
    beside.measured[i] = Mean(traced.classes[i], steps);
    beside.predicted[i] = forecast.classes[i];
  }
  beside.tasks = Pair(traced.groups, forecast.groups);
  std::erase_if(beside.tasks,
                [](const BesideTask& t) { return t.work_class == WorkClass::kProducts; });
  std::stable_sort(beside.tasks.begin(), beside.tasks.end(),
                   [](const BesideTask& a, const BesideTask& b) {
                     return std::max(a.measured.time, a.predicted.time) >
                            std::max(b.measured.time, b.predicted.time);
                   });
  return beside;
}

}  // namespace dcsim
