#include "sim/analysis/typical_step.h"

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

using enum StreamRole;

/// One kernel of 10 ns whose buffer the host asks for, in 100 ns when the driver has to give it.
struct AllocatingStep {
  AllocatingStep() {
    TaskDraft draft;
    draft.stream = kCompute;
    const BufferId buffer = kit.AddBuffer(Bytes::MiB(10));
    draft.Allocate(buffer);
    draft.Free(buffer);
    kit.Add(draft, {10});
  }

  static SimulationOptions Options() {
    SimulationOptions options = OneStep();
    options.segment = Duration::FromNs(100);
    return options;
  }

  SimulationOptions Typical(const SimulationOptions& options) {
    const Schedule& schedule = kit.schedule();
    return AtTypicalStep(schedule, kit.costs(), options);
  }

  StepKit kit;
};

// The first of ten steps takes 110 ns, the others 10: the second is the first of median time.
TEST(TypicalStepTest, IsTheFirstOfMedianTime) {
  AllocatingStep step;
  const SimulationOptions typical = step.Typical(AllocatingStep::Options());
  EXPECT_EQ(typical.warmup_steps, 1U);
  EXPECT_EQ(typical.measured_steps, 1U);
  EXPECT_EQ(step.kit.Run(typical).result.measured_step_times(typical.warmup_steps).front(),
            Duration::FromNs(10));
}

// Behind a step to warm up all are alike.
TEST(TypicalStepTest, StepsToWarmUpAreNotLookedAt) {
  AllocatingStep step;
  SimulationOptions options = AllocatingStep::Options();
  options.warmup_steps = 3;
  EXPECT_EQ(step.Typical(options).warmup_steps, 3U);
}

TEST(TypicalStepTest, AScheduleThatRunsOutOfMemoryHasNone) {
  AllocatingStep step;
  SimulationOptions options = AllocatingStep::Options();
  options.allocator.capacity = Bytes::MiB(5);
  const SimulationOptions typical = step.Typical(options);
  EXPECT_EQ(typical.warmup_steps, 0U);
  EXPECT_EQ(typical.measured_steps, 1U);
}

}  // namespace
}  // namespace dcsim
