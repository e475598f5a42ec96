// What a measured result says of its job, which a prediction for it takes over.

#include "tools/common/predict_measured.h"

#include <gtest/gtest.h>

namespace dcsim {
namespace {

WaitingDelays Delays(std::int64_t reduce_ns, std::int64_t copy_ns) {
  WaitingDelays delays{};
  delays[static_cast<std::size_t>(StreamRole::kReduce)] = Duration::FromNs(reduce_ns);
  delays[static_cast<std::size_t>(StreamRole::kCopy)] = Duration::FromNs(copy_ns);
  return delays;
}

Cluster Expecting(const WaitingDelays& delays) {
  Cluster cluster;
  cluster.gpu.gaps.waiting = delays;
  cluster.gpu.gaps.waiting_of_ops = 1.5;
  return cluster;
}

// The second rank's streams delay kernels by 1000 ns together, the first's by 900; kernels of ops
// are delayed half as long again.
TEST(WithDelaysOfTest, AreThoseOfTheRankThatTheOthersWaitFor) {
  Result measured;
  measured.measurement.emplace().ranks.resize(2);
  measured.measurement->ranks[0].waiting_delays = Delays(900, 0);
  measured.measurement->ranks[1].waiting_delays = Delays(200, 800);
  const Cluster cluster = WithDelaysOf(measured, Expecting(Delays(550, 550)));
  EXPECT_EQ(cluster.gpu.gaps.waiting, Delays(300, 1200));
}

TEST(WithDelaysOfTest, AreTheExpectedOnesWhereNobodyReadThem) {
  Result measured;
  measured.measurement.emplace().ranks.resize(2);
  EXPECT_EQ(WithDelaysOf(measured, Expecting(Delays(550, 550))).gpu.gaps.waiting, Delays(550, 550));
}

TEST(RecordedSegmentsTest, AreThoseOfTheRankThatReservedMost) {
  Result measured;
  measured.measurement.emplace().ranks.resize(3);
  EXPECT_TRUE(RecordedSegments(measured).empty());
  measured.measurement->ranks[0].segments = {{Bytes::MiB(2), Bytes::MiB(20)},
                                             {Bytes::MiB(0), Bytes::MiB(2)}};
  measured.measurement->ranks[1].segments = {{Bytes::MiB(32), Bytes::MiB(24)},
                                             {Bytes::MiB(0), Bytes::MiB(2)}};
  EXPECT_EQ(
      RecordedSegments(measured),
      (std::vector<SegmentPlace>{{std::uint64_t{32} << 20U, Bytes::MiB(24)}, {0, Bytes::MiB(2)}}));
}

TEST(FirstStepsOfTest, AreTheStepsOfTheRun) {
  HostCosts host;
  host.first_call = Duration::FromUs(13'000);
  Result measured;
  EXPECT_EQ(FirstStepsOf(measured, host).warmup, 2U) << "nothing is known";
  MeasurementNotes& notes = measured.measurement.emplace();
  notes.losses = {1, 1, 1};
  notes.step_times.assign(10, Duration::FromUs(1));
  notes.ranks.resize(1);
  const FirstSteps steps = FirstStepsOf(measured, host);
  EXPECT_EQ(steps.awaited, 3U);
  EXPECT_EQ(steps.warmup, 3U);
  EXPECT_EQ(steps.measured, 10U);
  EXPECT_TRUE(steps.modules_load) << "nobody read it";
  notes.step_times.assign(1000, Duration::FromUs(1));
  EXPECT_EQ(FirstStepsOf(measured, host).measured, 100U);
}

// As long as 19 ms were read in processes that had run such a step before.
TEST(FirstStepsOfTest, AShortFirstStepLoadsNothing) {
  HostCosts host;
  host.first_call = Duration::FromUs(13'000);
  Result measured;
  MeasurementNotes& notes = measured.measurement.emplace();
  notes.step_times.assign(10, Duration::FromUs(1));
  notes.ranks.resize(1);
  notes.ranks[0].first_host.ops = 10;
  notes.ranks[0].first_host.times = {Duration::FromUs(19'000), std::nullopt};
  EXPECT_FALSE(FirstStepsOf(measured, host).modules_load);
  notes.ranks[0].first_host.times.emplace_back(Duration::FromUs(90'000));
  EXPECT_TRUE(FirstStepsOf(measured, host).modules_load);
}

}  // namespace
}  // namespace dcsim
