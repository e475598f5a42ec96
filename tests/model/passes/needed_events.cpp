#include "tests/model/passes/needed_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/task_label.h"
#include "model/passes/verify.h"
#include "tests/model/passes/race_oracle.h"
#include "tests/support/schedule_edit.h"

namespace dcsim {

void ExpectRight(const Schedule& schedule, const Graph& graph) {
  EXPECT_THAT(Verify(schedule, graph), testing::IsEmpty());
  EXPECT_THAT(RaceOracle(schedule).FindRaces(), testing::IsEmpty());
}

std::set<std::string> NeededEvents(const Schedule& schedule, const Graph& graph) {
  std::set<std::string> needed;
  const auto tasks = TakeApart(schedule);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].draft.waits.empty()) {
      continue;
    }
    auto changed = tasks;
    changed[i].draft.waits.clear();
    const Schedule mutant = PutTogether(schedule, changed);
    const bool found = !Verify(mutant, graph).empty();
    const std::string label = TaskLabel(schedule, graph, TaskId(i));
    EXPECT_EQ(found, !RaceOracle(mutant).FindRaces().empty()) << label;
    if (found) {
      needed.insert(label);
    }
  }
  return needed;
}

}  // namespace dcsim
