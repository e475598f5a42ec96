#include "tools/views/difference_text.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "model/cost/kernel_traits.h"
#include "model/ir/task_label.h"
#include "tools/views/comparison_text.h"
#include "tools/views/table_text.h"

namespace dcsim {
namespace {

struct TimePair {
  Duration predicted;
  Duration measured;
  std::size_t tasks = 0;

  std::int64_t difference() const { return predicted.ns() - measured.ns(); }
};

std::string_view OpClassName(OpClass op_class) {
  switch (op_class) {
    case OpClass::kMatmul:
      return "matrix products";
    case OpClass::kAttention:
      return "attention";
    case OpClass::kAttentionBackward:
      return "attention, backward";
    case OpClass::kStreaming:
      return "other ops";
  }
  return "other ops";
}

std::string ClassOf(const Schedule& schedule, const Graph& graph, TaskId id) {
  if (const Collective* collective = schedule.FindCollective(id)) {
    return std::string(CollectiveKindName(collective->kind)) +
           (collective->engine == Engine::kCopyEngine ? ", copy engines" : "");
  }
  const Task& task = schedule.task(id);
  if (task.kind == TaskKind::kCompute) {
    return std::string(
        OpClassName(TraitsOf(graph, OpId(schedule.work(task.work).subject)).op_class()));
  }
  return std::string(TaskKindName(task.kind));
}

std::vector<TimePair> PairTasks(const Timeline& predicted,
                                const Timeline& measured,
                                std::size_t tasks) {
  std::vector<TimePair> pairs(tasks);
  for (const Span& span : predicted.spans) {
    pairs[span.task.index()].predicted += span.end - span.start;
  }
  for (const Span& span : measured.spans) {
    pairs[span.task.index()].measured += span.end - span.start;
  }
  return pairs;
}

}  // namespace

std::string PrintDifferences(const Timeline& predicted,
                             const Timeline& measured,
                             const Schedule& schedule,
                             const Graph& graph) {
  const auto pairs = PairTasks(predicted, measured, schedule.task_count());
  std::map<std::string, TimePair> classes;
  std::vector<TaskId> tasks;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const TaskId id(i);
    if (pairs[i].predicted == Duration() && pairs[i].measured == Duration()) {
      continue;
    }
    TimePair& sum = classes[ClassOf(schedule, graph, id)];
    sum.predicted += pairs[i].predicted;
    sum.measured += pairs[i].measured;
    ++sum.tasks;
    tasks.push_back(id);
  }
  std::string text = "by class of work\n";
  for (const auto& [name, sum] : classes) {
    text += ComparisonLine("  " + name, sum.predicted, sum.measured);
  }
  constexpr std::size_t kShown = 5;
  const std::size_t shown = std::min(kShown, tasks.size());
  std::partial_sort(tasks.begin(), tasks.begin() + static_cast<std::ptrdiff_t>(shown), tasks.end(),
                    [&](TaskId a, TaskId b) {
                      const auto of = [&](TaskId id) {
                        return std::abs(pairs[id.index()].difference());
                      };
                      return of(a) != of(b) ? of(a) > of(b) : a < b;
                    });
  text += "largest differences\n";
  for (std::size_t i = 0; i < shown; ++i) {
    const TimePair& pair = pairs[tasks[i].index()];
    text +=
        ComparisonLine("  " + TaskLabel(schedule, graph, tasks[i]), pair.predicted, pair.measured);
  }
  return text;
}

}  // namespace dcsim
