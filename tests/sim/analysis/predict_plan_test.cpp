#include <string>

#include <gtest/gtest.h>

#include "model/base/error.h"
#include "model/passes/resolve.h"
#include "sim/analysis/predict.h"
#include "tests/sim/test_cluster.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

/// By stage of ZeRO.
class PredictPlanTest : public testing::TestWithParam<int> {
 protected:
  Plan PlanOf(int micro_steps) const {
    PlanSpec spec;
    spec.options.stage = GetParam();
    spec.options.reduce_bucket = 1'500'000;
    spec.options.gradient_accumulation_steps = micro_steps;
    return Resolve(spec, graph, 4);
  }

  Graph graph = OneLayer();
  Cluster cluster = HandCluster();
  PredictionInputs inputs{graph, nullptr, cluster};
};

TEST_P(PredictPlanTest, FewMicroStepsTellWhatAllDo) {
  for (const int micro_steps : {8, 32, 61, 64}) {
    const Plan plan = PlanOf(micro_steps);
    const Prediction plain = Predict(LowerFor(plan, inputs), plan, inputs, false);
    EXPECT_EQ(PrintResult(PredictPlan(plan, inputs).result), PrintResult(plain.result))
        << micro_steps;
  }
}

TEST_P(PredictPlanTest, AThousandMicroStepsAreSimulatedFromFew) {
  EXPECT_EQ(PredictPlan(PlanOf(1024), inputs).micro_steps, 16);
}

TEST_P(PredictPlanTest, MicroStepsThatAreLeftOutTakeTime) {
  cluster.host.launch = Duration::FromMs(60'000);
  EXPECT_NO_THROW(PredictPlan(PlanOf(64), inputs));
  EXPECT_THROW(PredictPlan(PlanOf(1024), inputs), Error);  // more than a day
}

TEST_P(PredictPlanTest, HostsThatVaryAreSimulatedTaskByTask) {
  const Plan plan = PlanOf(64);
  inputs.host_pace.assign(LowerFor(plan, inputs).task_count(), TaskPace());
  EXPECT_EQ(PredictPlan(plan, inputs).micro_steps, 64);
}

INSTANTIATE_TEST_SUITE_P(Stages, PredictPlanTest, testing::Values(1, 2, 3));

}  // namespace
}  // namespace dcsim
