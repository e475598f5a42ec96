#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/ir/task_label.h"
#include "model/passes/verify.h"
#include "tests/model/passes/race_oracle.h"
#include "tests/support/schedule_edit.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

// Right schedules with one thing wrong. Verify must say so, and must agree with RaceOracle, which
// knows nothing of vector clocks, on whether there is a race.

/// Four layers. Gradients come as g3 (4 elements), g2 (12), g1 (6), g0 (5): with a bucket of 6 each
/// flushes the one before it, g2 makes the bucket grow, and ops allocate memory after every flush.
Graph FourLayers() {
  return ParseGraphText(R"(
graph four-layers 1 tokens
param w0 bfloat16[5]
param w1 bfloat16[6]
param w2 bfloat16[12]
param w3 bfloat16[4]
input x bfloat16[3]
forward
  a0: bfloat16[7] = my::linear(x, w0)
  a1: bfloat16[7] = my::linear(a0, w1)
  a2: bfloat16[7] = my::linear(a1, w2)
  a3: bfloat16[7] = my::linear(a2, w3)
  l: bfloat16[] = my::loss(a3)
  loss l
  output a3 held
  save a0
  save a1
  save a2
backward
  tangent t: bfloat16[] of l
  g3: bfloat16[4] = my::weight_grad(t, a2)
  d2: bfloat16[7] = my::input_grad(t, w3)
  g2: bfloat16[12] = my::weight_grad(d2, a1)
  d1: bfloat16[7] = my::input_grad(d2, w2)
  g1: bfloat16[6] = my::weight_grad(d1, a0)
  d0: bfloat16[7] = my::input_grad(d1, w1)
  g0: bfloat16[5] = my::weight_grad(d0, x)
  gradient w0 = g0
  gradient w1 = g1
  gradient w2 = g2
  gradient w3 = g3
)");
}

/// What moves waits and frees around, chosen by the bits of a number: 64 specs of ZeRO-3, 16 of the
/// other stages.
PlanSpec SpecOf(int stage, unsigned bits) {
  const auto chosen = [bits](unsigned bit) { return (bits >> bit & 1U) != 0; };
  PlanSpec spec = TinySpec(stage);
  spec.options.gradient_accumulation_steps = chosen(0) ? 2 : 1;
  spec.options.double_buffer = chosen(1);
  spec.options.reduce_bucket = chosen(2) ? 6 : 1000;
  if (stage != 3) {
    spec.options.reduce_collective =
        chosen(3) ? ReduceCollective::kReduceScatter : ReduceCollective::kAllReduce;
    return spec;
  }
  spec.options.release = chosen(3) ? ReleaseMode::kRecordStream : ReleaseMode::kEventOrdered;
  spec.gather_ahead = chosen(4) ? 2 : 0;
  if (chosen(5)) {
    spec.keep_gathered.patterns = {"w2"};
  }
  return spec;
}

/// All combinations for one stage.
std::vector<PlanSpec> Specs(int stage) {
  const unsigned count = stage == 3 ? 64 : 16;
  std::vector<PlanSpec> specs;
  specs.reserve(count);
  for (unsigned bits = 0; bits < count; ++bits) {
    specs.push_back(SpecOf(stage, bits));
  }
  return specs;
}

class VerifyMutationTest : public testing::TestWithParam<int> {
 protected:
  const Graph graph = FourLayers();

  std::vector<Violation> VerifyTasks(const Schedule& original,
                                     const std::vector<EditableTask>& tasks) const {
    return Verify(PutTogether(original, tasks), graph);
  }

  /// Calls `check(schedule, tasks)` for every spec of the stage.
  template <typename Check>
  void ForEachSchedule(Check check) const {
    for (const PlanSpec& spec : Specs(GetParam())) {
      const Schedule schedule = LowerTiny(spec, graph);
      check(schedule, TakeApart(schedule));
    }
  }

  /// Calls `check(schedule, mutant, task, waited)` for every wait of every schedule, which the
  /// mutant lacks.
  template <typename Check>
  void ForEachWait(Check check) const {
    ForEachSchedule([&](const Schedule& schedule, const std::vector<EditableTask>& tasks) {
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        for (const TaskId waited : tasks[i].draft.waits) {
          auto changed = tasks;
          std::erase(changed[i].draft.waits, waited);
          check(schedule, PutTogether(schedule, changed), TaskId(i), waited);
        }
      }
    });
  }

  /// ForEachSchedule, and `check(schedule, tasks, i, k)` for the k-th memory step of task i.
  template <typename Check>
  void ForEachMemoryStep(bool frees, Check check) const {
    ForEachSchedule([&](const Schedule& schedule, const std::vector<EditableTask>& tasks) {
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        for (std::size_t k = 0; k < tasks[i].draft.memory.size(); ++k) {
          if (tasks[i].draft.memory[k].frees == frees) {
            check(schedule, tasks, i, k);
          }
        }
      }
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Stage, VerifyMutationTest, testing::Values(1, 2, 3));

TEST_P(VerifyMutationTest, UnchangedSchedulesAreRight) {
  ForEachSchedule([&](const Schedule& schedule, const std::vector<EditableTask>& tasks) {
    EXPECT_THAT(VerifyTasks(schedule, tasks), testing::IsEmpty());
    EXPECT_THAT(RaceOracle(schedule).FindRaces(), testing::IsEmpty());
  });
}

/// Task kind of a wait: "pre-divide", or "wait for all-gather".
std::string KindOfWait(const Schedule& schedule, TaskId task, TaskId waited) {
  const std::string kind(TaskKindName(schedule.task(task).kind));
  return schedule.task(task).kind == TaskKind::kWait
             ? kind + " for " + std::string(TaskKindName(schedule.task(waited).kind))
             : kind;
}

TEST_P(VerifyMutationTest, MissingEventIsFoundWhereItMakesARace) {
  ForEachWait([&](const Schedule& schedule, const Schedule& mutant, TaskId task, TaskId waited) {
    const RaceOracle oracle(mutant);
    const bool found = !Verify(mutant, graph).empty();
    EXPECT_EQ(found, !oracle.FindRaces().empty()) << TaskLabel(schedule, graph, task);
    EXPECT_FALSE(found && oracle.Ordered(waited, task))
        << TaskLabel(schedule, graph, task) << " is ordered by other events";
  });
}

// No kind of event is there for nothing: for each, some schedule of the stage is wrong without it.
TEST_P(VerifyMutationTest, EachKindOfEventPreventsARace) {
  std::set<std::string> needed;
  std::set<std::string> all;
  ForEachWait([&](const Schedule& schedule, const Schedule& mutant, TaskId task, TaskId waited) {
    const std::string kind = KindOfWait(schedule, task, waited);
    all.insert(kind);
    if (!Verify(mutant, graph).empty()) {
      needed.insert(kind);
    }
  });
  EXPECT_EQ(needed, all);
  EXPECT_GE(all.size(), 7U) << "the specs use too few kinds of events";
}

TEST_P(VerifyMutationTest, MissingFreeIsFound) {
  ForEachMemoryStep(true, [&](const Schedule& schedule, std::vector<EditableTask> tasks,
                              std::size_t i, std::size_t k) {
    auto& memory = tasks[i].draft.memory;
    const BufferId buffer = memory[k].buffer;
    memory.erase(memory.begin() + static_cast<std::ptrdiff_t>(k));
    const auto violations = VerifyTasks(schedule, tasks);
    ASSERT_EQ(violations.size(), 1U) << TaskLabel(schedule, graph, TaskId(i));
    EXPECT_EQ(violations[0].rule, Rule::kNeverFreed);
    EXPECT_EQ(violations[0].buffer, buffer);
  });
}

TEST_P(VerifyMutationTest, SecondFreeIsFound) {
  ForEachMemoryStep(true, [&](const Schedule& schedule, std::vector<EditableTask> tasks,
                              std::size_t i, std::size_t k) {
    const BufferId buffer = tasks[i].draft.memory[k].buffer;
    tasks.back().draft.Free(buffer);
    const auto violations = VerifyTasks(schedule, tasks);
    ASSERT_EQ(violations.size(), 1U) << TaskLabel(schedule, graph, TaskId(i));
    EXPECT_EQ(violations[0].rule, Rule::kFreedTwice);
    EXPECT_EQ(violations[0].buffer, buffer);
  });
}

TEST_P(VerifyMutationTest, MissingAllocationIsFound) {
  ForEachMemoryStep(false, [&](const Schedule& schedule, std::vector<EditableTask> tasks,
                               std::size_t i, std::size_t k) {
    auto& memory = tasks[i].draft.memory;
    const BufferId buffer = memory[k].buffer;
    memory.erase(memory.begin() + static_cast<std::ptrdiff_t>(k));
    for (const Violation& violation : VerifyTasks(schedule, tasks)) {
      EXPECT_EQ(violation.rule, Rule::kUsedUnallocated);
      EXPECT_EQ(violation.buffer, buffer);
    }
    EXPECT_FALSE(VerifyTasks(schedule, tasks).empty()) << TaskLabel(schedule, graph, TaskId(i));
  });
}

TEST_P(VerifyMutationTest, SecondAllocationIsFound) {
  ForEachMemoryStep(false, [&](const Schedule& schedule, std::vector<EditableTask> tasks,
                               std::size_t i, std::size_t k) {
    const BufferId buffer = tasks[i].draft.memory[k].buffer;
    tasks[i].draft.Allocate(buffer);
    const auto violations = VerifyTasks(schedule, tasks);
    ASSERT_EQ(violations.size(), 1U) << TaskLabel(schedule, graph, TaskId(i));
    EXPECT_EQ(violations[0].rule, Rule::kAllocatedTwice);
    EXPECT_EQ(violations[0].buffer, buffer);
  });
}

// Each free is made by the task before the last that uses the buffer instead.
TEST_P(VerifyMutationTest, FreeBeforeTheLastUseIsFound) {
  ForEachMemoryStep(true, [&](const Schedule& schedule, std::vector<EditableTask> tasks,
                              std::size_t i, std::size_t k) {
    const MemoryStep free = tasks[i].draft.memory[k];
    const auto uses = [&](const EditableTask& task) {
      return std::any_of(task.draft.uses.begin(), task.draft.uses.end(),
                         [&](const BufferUse& use) { return use.buffer == free.buffer; });
    };
    const auto last = std::find_if(tasks.rbegin(), tasks.rend(), uses);
    if (last == tasks.rend() || std::next(last) == tasks.rend() ||
        schedule.buffer(free.buffer).carried) {
      return;  // no use, none before it, or freed in the next step
    }
    std::next(last)->draft.memory.push_back(free);
    tasks[i].draft.memory.erase(tasks[i].draft.memory.begin() + static_cast<std::ptrdiff_t>(k));
    const auto violations = VerifyTasks(schedule, tasks);
    ASSERT_FALSE(violations.empty()) << TaskLabel(schedule, graph, TaskId(i));
    EXPECT_EQ(violations[0].rule, Rule::kUsedUnallocated);
    EXPECT_EQ(violations[0].buffer, free.buffer);
  });
}

TEST_P(VerifyMutationTest, MissingReductionIsFound) {
  ForEachSchedule([&](const Schedule& schedule, const std::vector<EditableTask>& tasks) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].draft.kind != TaskKind::kReduce) {
        continue;
      }
      auto changed = tasks;
      changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
      const auto violations = VerifyTasks(schedule, changed);
      const auto missing =
          std::count_if(violations.begin(), violations.end(),
                        [](const auto& each) { return each.rule == Rule::kMissingReduction; });
      EXPECT_EQ(static_cast<std::size_t>(missing),
                schedule.FindCollective(TaskId(i))->calls.size());
    }
  });
}

}  // namespace
}  // namespace dcsim
