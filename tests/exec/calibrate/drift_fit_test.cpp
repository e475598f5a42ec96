#include "exec/calibrate/drift_fit.h"

#include <vector>

#include <gtest/gtest.h>

namespace dcsim::exec {
namespace {

DriftSample Apart(std::int64_t since_us, std::int64_t apart_us) {
  DriftSample sample;
  sample.since = Duration::FromUs(since_us);
  sample.apart = Duration::FromUs(apart_us);
  return sample;
}

// 2 us at once, and 10 us for each ms: at 1 ms 8 too many, at 2 ms 4 too few.
// (1 * 18 + 2 * 16) / (1 + 4) = 10 us per ms.
TEST(DriftFitTest, TheRateIsThatOfTheLineThroughTheShortestTime) {
  const std::vector<DriftSample> samples = {Apart(2000, 18), Apart(0, 2), Apart(1000, 20)};
  const DriftFit fit = FitDrift(samples);
  EXPECT_EQ(fit.idle, Duration::FromUs(2));
  EXPECT_NEAR(fit.rate, 0.010, 1e-12);
}

TEST(DriftFitTest, OneSampleHasNoRate) {
  const DriftSample sample = Apart(5, 3);
  const DriftFit fit = FitDrift({&sample, 1});
  EXPECT_EQ(fit.idle, Duration::FromUs(3));
  EXPECT_EQ(fit.rate, 0);
}

}  // namespace
}  // namespace dcsim::exec
