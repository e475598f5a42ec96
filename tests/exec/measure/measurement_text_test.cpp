// What a rank's process tells the one that started it.

#include "exec/measure/measurement_text.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dcsim::exec {
namespace {

// JSON has no word for such a loss: ranks whose training diverged ended with an error of the
// reader.
TEST(MeasurementTextTest, LossesThatAreNoNumberArrive) {
  RankMeasurement measurement;
  measurement.losses = {1.5, std::nan(""), INFINITY};
  const RankMeasurement read = ParseRankMeasurement(PrintRankMeasurement(measurement));
  EXPECT_THAT(read.losses, testing::ElementsAre(1.5, testing::IsNan(), testing::IsNan()));
}

}  // namespace
}  // namespace dcsim::exec
