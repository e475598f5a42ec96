// Compiled forms through resolve, lower and verify.

#include <algorithm>

#include <gtest/gtest.h>

#include "model/ir/schedule_text.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "model/passes/verify.h"
#include "tests/support/compiled_document.h"
#include "tests/support/error_text.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

PlanSpec CompiledSpec(int stage) {
  PlanSpec spec = TinySpec(stage);
  spec.options.backend = Backend::kInductor;
  return spec;
}

/// The tasks of kernels: what they read, write, allocate and free.
std::string KernelLines(const Schedule& schedule, const Graph& graph) {
  std::string lines;
  const std::string text = PrintScheduleText(schedule, graph);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    for (const char* kernel : {"aten::mm", "relu", "total", "slope"}) {
      if (line.find(std::string(" compute ") + kernel) != std::string::npos) {
        lines += line.substr(line.find("compute")) + "\n";
      }
    }
    at = end + 1;
  }
  return lines;
}

/// How many buffers kernels of a schedule allocate.
std::size_t CountAllocated(const std::string& lines) {
  return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '+'));
}

// The product's result, the relu in its place and the gradient over both are one buffer, which the
// gradient's reduction frees; the loss is the other.
TEST(CompiledTest, MemoryThatIsUsedAgainIsOneBuffer) {
  const Graph graph = CompiledGraph();
  const Schedule schedule = LowerTiny(CompiledSpec(3), graph);
  const std::string lines = KernelLines(schedule, graph);
  EXPECT_EQ(CountAllocated(lines), 2U) << lines;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4) << lines;
  EXPECT_NO_THROW(RequireCorrect(schedule, graph));
}

TEST(CompiledTest, ParameterIsGatheredForTheKernelThatReadsIt) {
  const Graph graph = CompiledGraph();
  const Plan plan = Resolve(CompiledSpec(3), graph, 2);
  ASSERT_EQ(plan.graphs[0].gathers.size(), 1U);
  EXPECT_EQ(plan.graphs[0].gathers[0].position, 0U);
  EXPECT_TRUE(plan.graphs[1].gathers.empty());
  EXPECT_TRUE(FindPlanFaults(plan, graph).empty());
}

TEST(CompiledTest, PlanAndGraphAreOfOneBackend) {
  const Graph graph = CompiledGraph();
  EXPECT_EQ(ErrorText([&] { Resolve(TinySpec(3), graph, 2); }),
            "plan: backend: the plan is for aten, the graph is of inductor");
  EXPECT_EQ(ErrorText([&] { Resolve(CompiledSpec(3), TwoLayers(), 2); }),
            "plan: backend: the plan is for inductor, the graph is of aten");
}

TEST(CompiledTest, OtherStagesHaveOtherForms) {
  EXPECT_EQ(ErrorText([&] { Resolve(CompiledSpec(2), CompiledGraph(), 2); }),
            "plan: backend: the graph was lowered for another stage than 2");
}

TEST(CompiledTest, OpsStayInTheOrderOfTheirLowering) {
  const Graph graph = CompiledGraph();
  Plan plan = Resolve(CompiledSpec(3), graph, 2);
  std::swap(plan.graphs[0].order[1], plan.graphs[0].order[2]);
  EXPECT_EQ(FindPlanFaults(plan, graph).front(),
            "backend: plain-1 moves ops, which a compiled graph does not allow: they use memory "
            "again in the order in which they were lowered");
}

}  // namespace
}  // namespace dcsim
