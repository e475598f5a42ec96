#include "sim/analysis/tied_gathers.h"

#include <gtest/gtest.h>

#include "model/passes/resolve.h"
#include "tests/support/workloads.h"

namespace dcsim {
namespace {

std::optional<TiedGathers> Find(const char* workload, const char* policy) {
  PlanSpec spec;
  spec.policy = policy;
  spec.options.stage = 3;
  const Graph graph = WorkloadGraph(workload);
  return FindTiedGathers(Resolve(spec, graph, 4), graph);
}

// 16 layers of 9 parameters, the embedding and the last norm are 146. The embedding's own release
// takes that norm's gather with it: 0.19.6 has not gathered it before. 0.19.8 without a profile has
// a budget that nothing fits into, and gathers everything alone. Together they are the model's
// 1,235,814,400 elements of 2 B; all sizes divide by 4 ranks, and the norm has 2048.
TEST(TiedGathersTest, BothListSchedulersGatherAlmostTheWholeModelFirst) {
  constexpr std::int64_t kBytes = std::int64_t{1'235'814'400} * 2;
  const auto older = Find("llama-3.2-1b", "deepcompile-0.19.6");
  const auto newer = Find("llama-3.2-1b", "deepcompile-0.19.8");
  ASSERT_TRUE(older && newer);
  EXPECT_EQ(older->param, ParamId(0));
  EXPECT_EQ(older->graph, 0U);
  EXPECT_EQ(older->gathers, 146U);
  EXPECT_EQ(older->ahead, 145U);
  EXPECT_EQ(older->bytes, Bytes(kBytes - std::int64_t{2048} * 2));
  EXPECT_EQ(newer->ahead, 146U);
  EXPECT_EQ(newer->bytes, Bytes(kBytes));
}

TEST(TiedGathersTest, OtherPoliciesAndUntiedModelsAreNotConcerned) {
  EXPECT_FALSE(Find("llama-3.2-1b", "plain-1"));
  EXPECT_FALSE(Find("llama-3-8b", "deepcompile-0.19.8"));
}

}  // namespace
}  // namespace dcsim
