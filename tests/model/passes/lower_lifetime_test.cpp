// How long reduce buffers and ZeRO-1's gradient partition live (DeepSpeed PR #8036), on a step of
// two graphs, and gradients kept for one reduction (PR #7992).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "model/passes/verify.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

/// A graph break behind a frozen first layer: the backward of the first graph runs last and makes
/// no gradient. DeepSpeed compiles an end of backward into graphs that reduce alone, and lets the
/// one that runs last give the buffers back.
Graph FrozenFirstGraph() {
  return ParseGraphText(R"(
graph break 2 tokens
param w1 bfloat16[3,5] frozen
param w2 bfloat16[5,1]
input x bfloat16[2,3]
forward
  a: bfloat16[2,5] = aten::mm(x, w1)
  output a as cut
forward
  receive a
  b: bfloat16[2,1] = aten::mm(a, w2)
  l: bfloat16[] = aten::sum(b)
  loss l
  save a
backward of 1
  tangent t: bfloat16[] of l
  gb: bfloat16[2,1] = aten::fill(t)
  g2: bfloat16[5,1] = aten::mm(a, gb)
  ga: bfloat16[2,5] = aten::mm(gb, w2)
  gradient w2 = g2
  pass ga of a
backward of 0
  receive ga
  gx: bfloat16[2,3] = aten::relu(ga)
)");
}

Schedule LowerWith(const Graph& graph, int stage, BufferLifetime lifetime) {
  PlanSpec spec = TinySpec(stage);
  spec.options.buffer_lifetime = lifetime;
  Schedule schedule = LowerTiny(spec, graph);
  EXPECT_THAT(Verify(schedule, graph), testing::IsEmpty());
  return schedule;
}

std::size_t CountResident(const Schedule& schedule, BufferClass buffer_class) {
  std::size_t count = 0;
  for (const BufferId id : schedule.residents()) {
    count += schedule.buffer(id).buffer_class == buffer_class ? 1U : 0U;
  }
  return count;
}

/// The ends of backward that give reduce buffers back, counted from 0.
std::vector<std::size_t> ReleasingEnds(const Schedule& schedule) {
  std::vector<std::size_t> ends;
  std::size_t end = 0;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    if (schedule.task(TaskId(i)).kind == TaskKind::kEndBackward) {
      if (!schedule.memory(TaskId(i)).empty()) {
        ends.push_back(end);
      }
      ++end;
    }
  }
  return ends;
}

TEST(BufferLifetimeTest, TheLastGraphThatReducesGivesTheBuffersBack) {
  const Schedule schedule = LowerWith(FrozenFirstGraph(), 1, BufferLifetime::kStep);
  EXPECT_THAT(ReleasingEnds(schedule), testing::ElementsAre(0U));
  EXPECT_EQ(CountResident(schedule, BufferClass::kReduceBucket), 0U);
}

TEST(BufferLifetimeTest, AsMergedALastGraphWithoutReductionsKeepsThem) {
  const Schedule schedule = LowerWith(FrozenFirstGraph(), 1, BufferLifetime::kPr8036);
  EXPECT_THAT(ReleasingEnds(schedule), testing::IsEmpty());
  EXPECT_EQ(CountResident(schedule, BufferClass::kReduceBucket), 2U);
  EXPECT_EQ(CountResident(schedule, BufferClass::kGradientPartition),
            0U);  // goes back all the same
}

TEST(BufferLifetimeTest, AsMergedAndMendedAreOneWhereTheLastGraphReduces) {
  const Graph graph = TwoLayers();
  const Schedule merged = LowerWith(graph, 1, BufferLifetime::kPr8036);
  EXPECT_THAT(ReleasingEnds(merged), testing::ElementsAre(0U));
  EXPECT_EQ(CountResident(merged, BufferClass::kReduceBucket), 0U);
}

TEST(BufferLifetimeTest, BeforeTheChangeBuffersAndPartitionStay) {
  for (const int stage : {1, 2, 3}) {
    const Schedule schedule = LowerWith(TwoLayers(), stage, BufferLifetime::kPermanent);
    EXPECT_THAT(ReleasingEnds(schedule), testing::IsEmpty());
    EXPECT_EQ(CountResident(schedule, BufferClass::kReduceBucket), 2U);
    EXPECT_EQ(CountResident(schedule, BufferClass::kGradientPartition), 1U);
  }
}

Schedule LowerWithBucket(const Graph& graph, std::int64_t bucket) {
  PlanSpec spec = TinySpec(1);
  spec.options.buffer_lifetime = BufferLifetime::kPermanent;
  spec.options.reduce_bucket = bucket;
  return LowerTiny(spec, graph);
}

std::vector<std::int64_t> ResidentBuckets(const Graph& graph, std::int64_t bucket) {
  const Schedule schedule = LowerWithBucket(graph, bucket);
  std::vector<std::int64_t> bytes;
  for (const BufferId id : schedule.residents()) {
    if (schedule.buffer(id).buffer_class == BufferClass::kReduceBucket) {
      bytes.push_back(schedule.buffer(id).bytes.count());
    }
  }
  return bytes;
}

// TwoLayers reduces w2's 5 elements, then w1's 15. A bucket of 20 holds both: one flush, which is
// odd, but nothing grows. A bucket of 15 takes w2 in buffer 0, flushes for w1, which finds buffer 1
// large enough: two flushes, no growth. Of 10: w2 in buffer 0, w1 in buffer 1, which grows to 15;
// two flushes are even, so buffer 0 never sees w1. Of 4: both find their buffer too small, 5
// and 15.
TEST(BufferLifetimeTest, OnlyBuffersThatALargeGradientFindsGrow) {
  EXPECT_THAT(ResidentBuckets(TwoLayers(), 20), testing::ElementsAre(40, 40));
  EXPECT_THAT(ResidentBuckets(TwoLayers(), 15), testing::ElementsAre(30, 30));
  EXPECT_THAT(ResidentBuckets(TwoLayers(), 10), testing::ElementsAre(20, 30));
  EXPECT_THAT(ResidentBuckets(TwoLayers(), 4), testing::ElementsAre(10, 30));
}

/// Gradients of 9, 9, 9, 20 and 9 elements, in this order.
Graph OneLargeGradient() {
  return ParseGraphText(R"(
graph one-large 2 tokens
param a bfloat16[9]
param b bfloat16[9]
param c bfloat16[9]
param d bfloat16[20]
param e bfloat16[9]
input x bfloat16[2]
forward
  y: bfloat16[2] = my::use(x, a, b, c, d, e)
  l: bfloat16[] = aten::sum(y)
  loss l
  save y
backward of 0
  tangent t: bfloat16[] of l
  ga: bfloat16[9] = my::one(t, y)
  gb: bfloat16[9] = my::one(t, y)
  gc: bfloat16[9] = my::one(t, y)
  gd: bfloat16[20] = my::one(t, y)
  ge: bfloat16[9] = my::one(t, y)
  gradient a = ga
  gradient b = gb
  gradient c = gc
  gradient d = gd
  gradient e = ge
)");
}

// Buckets of 10. The first step flushes five times, buffer 0 first: 9, 9, 9, 20 (in buffer 1,
// which grows), 9. The second begins with buffer 1, which holds 18: 9 and 9, 9, 20 (in buffer 1
// again), 9, an even number, so that all steps from then on begin with buffer 1. One that began
// with buffer 0 would have its 20 elements there.
TEST(BufferLifetimeTest, AStepBeginsWithTheBufferAtWhichTheOneBeforeEnded) {
  const Graph graph = OneLargeGradient();
  EXPECT_THAT(ResidentBuckets(graph, 10), testing::ElementsAre(20, 40));
  EXPECT_THAT(Verify(LowerWithBucket(graph, 10), graph), testing::IsEmpty());
}

// Two micro-steps, coalesced: the first keeps g2 and g1 where the backward wrote them, the second
// adds to them. Behind its last op both go into the bucket, in the order of the flat tensor: w1's
// 16 elements (padded for two ranks) at 0, w2's 6 behind them; one flush, one end of backward that
// gives the buffers back.
TEST(CoalescedTest, KeptGradientsAreReducedBehindTheLastBackward) {
  PlanSpec spec = TinySpec(3);
  spec.options.gradient_accumulation_steps = 2;
  spec.options.gradient_reduction = GradientReduction::kCoalesced;
  const Schedule schedule = LowerTiny(spec, TwoLayers());
  EXPECT_THAT(Verify(schedule, TwoLayers()), testing::IsEmpty());
  std::vector<std::string> kinds;
  std::vector<CollectiveCall> calls;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    const Task& task = schedule.task(TaskId(i));
    if (task.kind == TaskKind::kAccumulate || task.kind == TaskKind::kReduceGradCopy ||
        task.kind == TaskKind::kReduce || task.kind == TaskKind::kStoreReduced) {
      kinds.push_back(std::to_string(task.micro_step) + " " + std::string(TaskKindName(task.kind)));
    }
    if (task.kind == TaskKind::kReduce) {
      calls = schedule.FindCollective(TaskId(i))->calls;
    }
  }
  EXPECT_THAT(kinds, testing::ElementsAre("1 accumulate", "1 accumulate", "1 reduce-grad-copy",
                                          "1 reduce-grad-copy", "1 reduce"));
  EXPECT_EQ(calls, (std::vector<CollectiveCall>{{ParamId(0), 16, 0}, {ParamId(1), 6, 16}}));
  EXPECT_THAT(ReleasingEnds(schedule), testing::ElementsAre(1U));
}

}  // namespace
}  // namespace dcsim
