#include "sim/analysis/most_reserved.h"

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

using enum StreamRole;

// Requests of 10 MiB or more get segments of their own size.
constexpr Bytes kPiece = Bytes::MiB(10);

/// A buffer of the gathers' pool that compute uses for 80 ns, launched in 10, is freed at once; the
/// host needs 100 ns, and asks for another one.
struct FreedBesideCompute {
  explicit FreedBesideCompute(ReleaseMode release) {
    kit.UseAndRelease(kit.AddGathered(kPiece, release), kCompute, {80, 10});
    kit.Host(100);
    kit.UseAndRelease(kit.AddGathered(kPiece, release), kGather, {1, 10});
  }

  Bytes Most(const SimulationOptions& options) {
    const Schedule& schedule = kit.schedule();
    return MostReserved(schedule, kit.costs(), options);
  }

  StepKit kit;
};

// At 110 ns compute's 80 ns, from 10 on, have passed; a host of 0.7 asks at 77, when they have not.
TEST(MostReservedTest, AFasterHostMayNeedMore) {
  FreedBesideCompute step(ReleaseMode::kRecordStream);
  EXPECT_EQ(step.kit.Run().result.memory.reserved.peak, kPiece);
  EXPECT_EQ(step.Most(OneStep()), kPiece * 2);
}

// What is freed in the order of events is there at once, whatever the host's pace.
TEST(MostReservedTest, HostsDoNotMatterInTheOrderOfEvents) {
  FreedBesideCompute step(ReleaseMode::kEventOrdered);
  EXPECT_EQ(step.Most(OneStep()), kPiece);
}

TEST(MostReservedTest, AKnownHostIsTheOnlyOne) {
  FreedBesideCompute step(ReleaseMode::kRecordStream);
  SimulationOptions options = OneStep();
  options.host_pace.assign(step.kit.schedule().task_count(), TaskPace{1, true});
  EXPECT_EQ(step.Most(options), kPiece);
}

}  // namespace
}  // namespace dcsim
