// A sample of what sweep-numbers draws (LOG.md has a million).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/passes/resolve.h"
#include "sim/analysis/predict.h"
#include "sim/search/random.h"
#include "tests/fuzz/exercise.h"
#include "tests/fuzz/exercise_numbers.h"
#include "tests/support/error_text.h"

namespace dcsim {
namespace {

TEST(NumbersTest, StepsAreSimulatedOrRefused) {
  Random random(1'000'003);
  int simulated = 0;
  for (int i = 0; i < 600; ++i) {
    simulated += ExerciseNumbers(random) ? 1 : 0;
  }
  // A third; most of the others have the points of a table out of order.
  EXPECT_GT(simulated, 180);
}

TEST(NumbersTest, AStepOfMoreThanADayIsRefused) {
  Cluster cluster = FuzzCluster();
  cluster.gpu.memory_bandwidth = BytesPerSecond(1);
  const PredictionInputs inputs{FuzzGraph(), nullptr, cluster};
  const Plan plan = Resolve(SpecOf(0), FuzzGraph(), 2);
  const Schedule schedule = LowerFor(plan, inputs);
  EXPECT_THAT(ErrorText([&] { EstimateWorks(schedule, FuzzGraph(), nullptr, cluster); }),
              testing::StartsWith("a step takes more than a day"));
}

}  // namespace
}  // namespace dcsim
