#include "sim/analysis/settled_memory.h"

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

/// Steps of which all count.
FirstSteps AllOf(std::optional<std::uint32_t> steps) {
  FirstSteps all;
  all.warmup = 0;
  all.measured = steps;
  return all;
}

/// A of 12 MiB and C of 14 are temporaries, B of 8 is held until the next step has its own:
/// allocate B, C, A, free C, A, the last step's B. B's segment S has 20 MiB, C's and A's have what
/// they ask for, newer ones lower addresses. Behind each step
///   1  B in S at 0, C in its own segment of 14, A in S behind B: 34 MiB
///   2  B in S at 8, where A was; A gets a segment of 12: 46 MiB
///   3  B in S at 0 again, A in its segment
///   4  12 MiB are free in S and in A's segment, which is lower: B in it, A in S at 8
///   5  S is free, but 14 MiB fit B more closely: B in C's segment, C in S at 0, A in a new segment
///      of 12: 58 MiB
class DriftingBlocks {
 public:
  DriftingBlocks() {
    Buffer held;
    held.bytes = Bytes::MiB(8);
    held.carried = true;
    const BufferId b = kit_.AddBuffer(held);
    const BufferId a = kit_.AddBuffer(Bytes::MiB(12));
    const BufferId c = kit_.AddBuffer(Bytes::MiB(14));
    TaskDraft draft;
    draft.stream = StreamRole::kCompute;
    draft.Allocate(b);
    draft.Allocate(c);
    draft.Allocate(a);
    draft.Free(c);
    draft.Free(a);
    draft.Free(b);
    kit_.Add(draft, {1});
  }

  Bytes Reserved(const FirstSteps& steps) {
    return SettledMemory(kit_.schedule(), {}, steps).reserved.peak;
  }

 private:
  StepKit kit_;
};

TEST(SettledMemoryTest, ACacheMayGrowInTheFifthStep) {
  DriftingBlocks blocks;
  EXPECT_EQ(blocks.Reserved(AllOf(1)), Bytes::MiB(34));
  EXPECT_EQ(blocks.Reserved(AllOf(4)), Bytes::MiB(46));
  EXPECT_EQ(blocks.Reserved(AllOf(5)), Bytes::MiB(58));
}

TEST(SettledMemoryTest, LooksUntilTheCacheNoLongerChanges) {
  DriftingBlocks blocks;
  EXPECT_EQ(blocks.Reserved(AllOf(std::nullopt)), blocks.Reserved(AllOf(kMostSteps)));
  EXPECT_EQ(blocks.Reserved({}), blocks.Reserved(AllOf(kMostSteps))) << "with steps to warm up";
}

TEST(SettledMemoryTest, ARequestThatNoMemoryServesEndsIt) {
  StepKit kit;
  const BufferId first = kit.AddBuffer(Bytes::MiB(10));
  const BufferId second = kit.AddBuffer(kMaxCapacity + Bytes(1));
  TaskDraft draft;
  draft.stream = StreamRole::kCompute;
  draft.Allocate(first);
  draft.Allocate(second);
  kit.Add(draft, {1});
  EXPECT_EQ(SettledMemory(kit.schedule(), {}, {}).reserved.peak, Bytes::MiB(10));
}

// What a simulation in time comes to.
TEST(SettledMemoryTest, IsWhatTheSameStepsNeedInTime) {
  const Graph graph = TwoLayers();
  for (const int stage : {1, 2, 3}) {
    for (const bool expandable : {false, true}) {
      const Schedule schedule = LowerTiny(TinySpec(stage), graph);
      SimulationOptions options = OneStep();
      options.warmup_steps = 2;
      options.allocator.expandable_segments = expandable;
      const std::vector<WorkCost> costs(schedule.works().size());
      const AllocatorStats stats = Simulate(schedule, costs, options, {}).memory;
      FirstSteps one;
      one.measured = 1;
      const AllocatorStats replayed = SettledMemory(schedule, options.allocator, one);
      EXPECT_EQ(replayed.allocated.peak, stats.allocated.peak) << "ZeRO-" << stage;
      EXPECT_EQ(replayed.reserved.peak, stats.reserved.peak) << "ZeRO-" << stage;
    }
  }
}

}  // namespace
}  // namespace dcsim
