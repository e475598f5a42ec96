#include "model/cost/shown_operators.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/graph/step_facts.h"
#include "tests/support/workloads.h"

namespace dcsim {
namespace {

TEST(ShownOperatorsTest, AreThoseOfTheProfiledWorkloads) {
  std::set<std::string> missing;
  for (const std::string& name : ProfiledWorkloadNames()) {
    const Graph graph = WorkloadGraph(name);
    const StepFacts facts = AnalyseStep(graph);
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
      if (!facts.is_view[i] && !IsShown(graph.target(OpId(i)))) {
        missing.emplace(graph.target(OpId(i)));
      }
    }
  }
  EXPECT_THAT(missing, testing::IsEmpty());
}

TEST(ShownOperatorsTest, OthersAreNot) {
  EXPECT_FALSE(IsShown("aten::cudnn_batch_norm"));
  EXPECT_FALSE(IsShown("my::op"));
}

}  // namespace
}  // namespace dcsim
