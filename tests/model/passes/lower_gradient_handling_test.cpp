#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "model/graph/param_layout.h"
#include "model/passes/lower.h"
#include "tests/support/schedule_edit.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

PlanSpec HandledSpec(int stage) {
  PlanSpec spec = TinySpec(stage);
  spec.options.gradient_handling = GradientHandling::kDeepSpeed;
  spec.options.compute_grad_norm = true;
  return spec;
}

struct Kernels {
  std::int64_t moved = 0;  // bytes
  std::int64_t launches = 0;
};

/// Of all tasks of a kind whose memory work has this pattern.
Kernels Total(const Schedule& schedule, TaskKind kind, MemoryPattern pattern) {
  Kernels total;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    const Task& task = schedule.task(TaskId(i));
    const Work& work = schedule.work(task.work);
    if (task.kind == kind && work.kind == Work::Kind::kMemory && work.pattern == pattern) {
      total.moved += work.moved.count();
      total.launches += work.launches;
    }
  }
  return total;
}

std::size_t Count(const Schedule& schedule, TaskKind kind) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    count += schedule.task(TaskId(i)).kind == kind ? 1U : 0U;
  }
  return count;
}

// TwoLayers over two ranks: a partition of `n` elements of bfloat16 or float32. A float64 copy of
// each gradient is written and read; the float32 gradient is scaled in place, though nothing clips.
TEST(LowerGradientHandlingTest, Zero3ReadsNormsInFloat64AndScales) {
  const Graph graph = TwoLayers();
  const Schedule schedule = LowerTiny(HandledSpec(3), graph);
  const auto trained = static_cast<std::int64_t>(graph.params.size());
  const Kernels widened = Total(schedule, TaskKind::kGradientNorm, MemoryPattern::kWiden);
  EXPECT_EQ(widened.launches, trained);
  const std::int64_t master =
      Total(schedule, TaskKind::kClipGradients, MemoryPattern::kScale).moved / 2;
  const std::int64_t elements = master / 4;
  ASSERT_GT(elements, 0);
  EXPECT_EQ(widened.moved, elements * (ElementBytes(graph.value(graph.params[0].value).dtype) + 8));
  const Kernels read = Total(schedule, TaskKind::kGradientNorm, MemoryPattern::kNorm);
  EXPECT_EQ(read.launches, trained + 11 + 22);
  EXPECT_EQ(read.moved, elements * 8 + 2 * trained * 8);
  EXPECT_EQ(Count(schedule, TaskKind::kReduceNorm), 1U);
}

/// TwoLayers with parameters of so many elements each.
Graph WithParamsOf(std::int64_t elements) {
  Graph graph = TwoLayers();
  for (const Param& param : graph.params) {
    Value& value = graph.values[param.value.index()];
    value.shape = {elements};
    value.strides = {1};
    graph.storages[value.storage.index()].bytes = value.bytes();
  }
  return graph;
}

// Of 1e9 elements of a rank: two parameters of 2e9 over two ranks are a sub-group each.
TEST(LowerGradientHandlingTest, Zero3UpdatesSubGroupBySubGroup) {
  const auto updates = [](int stage, std::int64_t elements) {
    return Count(LowerTiny(HandledSpec(stage), WithParamsOf(elements)), TaskKind::kOptimizerStep);
  };
  EXPECT_EQ(updates(3, 2'000'000'000), 2U);
  EXPECT_EQ(updates(3, 1'999'999'998), 1U);
  EXPECT_EQ(updates(1, 2'000'000'000), 1U);
  const Schedule cut = LowerTiny(HandledSpec(3), WithParamsOf(2'000'000'000));
  EXPECT_EQ(Total(cut, TaskKind::kGradientNorm, MemoryPattern::kNorm).launches, 2 + 2 * 11 + 22);
  EXPECT_EQ(Total(cut, TaskKind::kStoreParams, MemoryPattern::kNarrow).moved,
            2 * 1'000'000'000LL * (4 + 2));
  EXPECT_EQ(Count(cut, TaskKind::kReduceNorm), 1U);
}

/// Parameters of which a rank owns a part, of the one of two ranks that has most.
std::int64_t Parts(const Graph& graph, const ScheduleOptions& options) {
  std::vector<ParamId> all;
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    all.emplace_back(i);
  }
  const ParamLayout layout(graph, options, 2);
  return static_cast<std::int64_t>(
      std::max(layout.owned(all, 0).parts, layout.owned(all, 1).parts));
}

// ZeRO-1 and 2 look for the largest and smallest element of each own gradient first, thirteen
// kernels a parameter of the rank that has most, and the host reads twice; nothing is scaled unless
// something clips.
TEST(LowerGradientHandlingTest, Zero1And2LookForOverflowFirst) {
  for (const int stage : {1, 2}) {
    const Graph graph = TwoLayers();
    const Schedule schedule = LowerTiny(HandledSpec(stage), graph);
    const std::int64_t parts = Parts(graph, HandledSpec(stage).options);
    EXPECT_EQ(parts, 2);  // the first rank owns a part of one alone
    EXPECT_EQ(Total(schedule, TaskKind::kGradientNorm, MemoryPattern::kNorm).launches,
              13 * parts + parts + 11 + 22);
    EXPECT_EQ(Count(schedule, TaskKind::kReduceNorm), 2U);
    EXPECT_EQ(Count(schedule, TaskKind::kClipGradients), 0U);
    PlanSpec clips = HandledSpec(stage);
    clips.options.gradient_clipping = 1.0;
    EXPECT_EQ(Count(LowerTiny(clips, graph), TaskKind::kClipGradients), 1U);
  }
}

TEST(LowerGradientHandlingTest, Zero1And2WithoutTheNormOnlyLookForOverflow) {
  PlanSpec spec = HandledSpec(1);
  spec.options.compute_grad_norm = false;
  const Schedule schedule = LowerTiny(spec, TwoLayers());
  EXPECT_EQ(Count(schedule, TaskKind::kReduceNorm), 1U);
  EXPECT_EQ(Total(schedule, TaskKind::kGradientNorm, MemoryPattern::kWiden).launches, 0);
}

// The host waits for what it reads, and what was read is free then.
TEST(LowerGradientHandlingTest, TheHostReadsWhatRanksFound) {
  const Schedule schedule = LowerTiny(HandledSpec(3), TwoLayers());
  const TaskId reduced = NthTask(schedule, TaskKind::kReduceNorm);
  bool reads = false;
  for (std::size_t i = reduced.index(); i < schedule.task_count(); ++i) {
    reads = reads || schedule.task(TaskId(i)).kind == TaskKind::kHostSynchronize;
  }
  EXPECT_TRUE(reads);
}

/// What the host does in Python, task by task where it does anything.
std::vector<PythonCalls> PythonOf(const Schedule& schedule) {
  std::vector<PythonCalls> calls;
  for (const Task& task : schedule.tasks()) {
    const PythonCalls& own = schedule.work(task.work).python;
    if (!(own == PythonCalls())) {
      calls.push_back(own);
    }
  }
  return calls;
}

// ZeRO-3 frees and partitions each parameter; both graphs are entered, and autograd ends in each
// trained parameter. Every gradient is copied and read. Scalars that a step makes once cost two
// calls each, and the collective 28.
TEST(LowerGradientHandlingTest, TheHostCallsFromPython) {
  const Graph graph = TwoLayers();
  const auto all = static_cast<std::uint32_t>(graph.params.size());
  const std::vector<PythonCalls> expected = {
      {.operators = all},      {.graphs = 1},      {.graphs = 1},
      {.autograd_nodes = all}, {.operators = all}, {.operators = all},
      {.operators = all},      {.operators = 50},  {.operators = 44}};
  EXPECT_EQ(PythonOf(LowerTiny(HandledSpec(3), graph)), expected);
  PlanSpec sums = HandledSpec(1);
  sums.options.compute_grad_norm = false;
  const auto parts = static_cast<std::uint32_t>(Parts(graph, sums.options));
  const std::vector<PythonCalls> checks = {
      {.graphs = 1}, {.graphs = 1}, {.autograd_nodes = all}, {.operators = 3 * parts}};
  EXPECT_EQ(PythonOf(LowerTiny(sums, graph)), checks);
}

// Each micro-step ends with a look at the clock, for which the device has to be done.
TEST(LowerGradientHandlingTest, TheTimerWaitsForTheDeviceBehindEachMicroStep) {
  PlanSpec spec = HandledSpec(2);
  spec.options.compute_grad_norm = false;
  const std::size_t one = Count(LowerTiny(spec, TwoLayers()), TaskKind::kHostSynchronize);
  spec.options.gradient_accumulation_steps = 3;
  const Schedule three = LowerTiny(spec, TwoLayers());
  EXPECT_EQ(Count(three, TaskKind::kHostSynchronize), one + 2);
  EXPECT_EQ(three.task(TaskId(three.task_count() - 1)).kind, TaskKind::kHostSynchronize);
}

TEST(LowerGradientHandlingTest, LeanStepsHaveNoneOfIt) {
  PlanSpec spec = TinySpec(3);
  const Schedule schedule = LowerTiny(spec, TwoLayers());
  EXPECT_EQ(Count(schedule, TaskKind::kGradientNorm), 0U);
  EXPECT_EQ(Count(schedule, TaskKind::kClipGradients), 0U);
  EXPECT_EQ(Count(schedule, TaskKind::kHostSynchronize), 0U);
  EXPECT_EQ(PythonOf(schedule), std::vector<PythonCalls>());
}

}  // namespace
}  // namespace dcsim
