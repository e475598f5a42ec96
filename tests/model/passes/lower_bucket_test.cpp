#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "tests/support/schedule_edit.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

// The reduce bucket in ZeRO-2, where slices are not padded: gradients of 5 (w2, first) and 15 (w1)
// elements of TwoLayers. Steps are those of reduceGrad in section 1.2 of "What DeepCompile does".

PlanSpec BucketSpec(std::int64_t elements, bool double_buffer) {
  PlanSpec spec = TinySpec(2);
  spec.options.reduce_bucket = elements;
  spec.options.double_buffer = double_buffer;
  return spec;
}

TEST(LowerBucketTest, GradientsThatFitShareAFlush) {
  const Schedule schedule = LowerTiny(BucketSpec(20, true), TwoLayers());
  ASSERT_EQ(schedule.collectives()[0].calls.size(), 2U);
  EXPECT_EQ(schedule.collectives()[0].calls[0], (CollectiveCall{ParamId(1), 5, 0}));
  EXPECT_EQ(schedule.collectives()[0].calls[1], (CollectiveCall{ParamId(0), 15, 5}));
}

// Of 2 bytes: the second of two begins at the next multiple of 8 elements, for which 23 are needed.
TEST(LowerBucketTest, AlignedGradientsBeginAtMultiplesOf16Bytes) {
  PlanSpec spec = BucketSpec(23, true);
  spec.options.align_tensors = true;
  const Schedule together = LowerTiny(spec, TwoLayers());
  ASSERT_EQ(together.collectives()[0].calls.size(), 2U);
  EXPECT_EQ(together.collectives()[0].calls[1], (CollectiveCall{ParamId(0), 15, 8}));
  spec.options.reduce_bucket = 22;
  const Schedule alone = LowerTiny(spec, TwoLayers());
  EXPECT_EQ(alone.collectives()[0].calls.size(), 1U);
  EXPECT_EQ(alone.collectives()[1].calls[0], (CollectiveCall{ParamId(0), 15, 0}));
}

TEST(LowerBucketTest, BothBuffersHaveTheBucketsSize) {
  const Schedule schedule = LowerTiny(BucketSpec(20, true), TwoLayers());
  std::vector<Bytes> sizes;
  for (const Buffer& buffer : schedule.buffers()) {
    if (buffer.buffer_class == BufferClass::kReduceBucket) {
      sizes.push_back(buffer.bytes);
    }
  }
  EXPECT_THAT(sizes, testing::ElementsAre(Bytes(40), Bytes(40)));
}

// 5 + 15 > 19 (step 2): w2 is flushed alone before w1 is copied; rank 0's partition is the first
// ten of w1's elements, so it stores those, and nothing of w2. The second buffer has no flush to
// wait for.
constexpr char kOverflow[] = R"(
7 host allocate +b13 +b14
8 copy reduce-grad-copy w2 [20 B] after 6 r b12 w b13
9 compute aten::mm r b11,b0 w b15 +b15 -b11
10 compute aten::mm r b6,b15 w b16 +b16 -b15
11 reduce pre-divide w2 [20 B] after 8 w b13
12 reduce reduce w2 [10 B] w b13
13 reduce store-reduced w2 [0 B] r b13 w b1
14 compute wait for reduce-grad-copy w2 after 8 -b12
15 copy reduce-grad-copy w1 [60 B] after 14 r b16 w b14
16 reduce pre-divide w1 [60 B] after 15 w b14
17 reduce reduce w1 [30 B] w b14
18 reduce store-reduced w1 [40 B] r b14 w b1
)";

TEST(LowerBucketTest, OverflowFlushesAndSwapsBuffers) {
  EXPECT_EQ(TinyTaskLines(BucketSpec(19, true), TwoLayers(), 7, 18), kOverflow);
}

// The second rank's partition is the other five elements of w1 and all of w2, behind each other.
TEST(LowerBucketTest, EachRankStoresItsOwnPart) {
  const Schedule schedule = LowerTiny(BucketSpec(19, true), TwoLayers());
  EXPECT_EQ(schedule.ranks_told(), 2);
  ASSERT_EQ(schedule.rank_works().size(), 2U);
  const RankWork& w2 = schedule.rank_works()[0];
  const RankWork& w1 = schedule.rank_works()[1];
  EXPECT_EQ(w2.task, TaskId(13));
  EXPECT_EQ(schedule.work(w2.work).moved, Bytes(20));
  EXPECT_EQ(schedule.work(w2.work).launches, 1U);
  EXPECT_EQ(w1.task, TaskId(18));
  EXPECT_EQ(schedule.work(w1.work).moved, Bytes(20));
}

// Cut by parameter, ranks own as much of each.
TEST(LowerBucketTest, ReduceScattersLeaveAllRanksAlike) {
  const Schedule schedule = LowerTiny(TinySpec(3), TwoLayers());
  EXPECT_EQ(schedule.ranks_told(), 1);
  EXPECT_TRUE(schedule.rank_works().empty());
}

// With one buffer (step 4) compute waits for the flush just issued, task 13, before w1 is copied.
constexpr char kSingleBuffer[] = R"(
7 host allocate +b13
8 copy reduce-grad-copy w2 [20 B] after 6 r b12 w b13
9 compute aten::mm r b11,b0 w b14 +b14 -b11
10 compute aten::mm r b6,b14 w b15 +b15 -b14
11 reduce pre-divide w2 [20 B] after 8 w b13
12 reduce reduce w2 [10 B] w b13
13 reduce store-reduced w2 [0 B] r b13 w b1
14 compute wait for reduce-grad-copy w2 after 8 -b12
15 compute wait for store-reduced w2 after 13
16 copy reduce-grad-copy w1 [60 B] after 15 r b15 w b13
)";

TEST(LowerBucketTest, SingleBufferWaitsForItsOwnFlush) {
  EXPECT_EQ(TinyTaskLines(BucketSpec(19, false), TwoLayers(), 7, 16), kSingleBuffer);
}

// w1 alone is larger than the buffer (step 3): behind the flush of w2 the host waits for the reduce
// stream, and a buffer of 15 elements takes the place of the second one.
constexpr char kGrowth[] = R"(
11 reduce pre-divide w2 [20 B] after 8 w b13
12 reduce reduce w2 [10 B] w b13
13 reduce store-reduced w2 [0 B] r b13 w b1
14 compute wait for reduce-grad-copy w2 after 8 -b12
15 host host-synchronize after 13 +b17 -b14
16 copy reduce-grad-copy w1 [60 B] after 14 r b16 w b17
)";

TEST(LowerBucketTest, OversizeGradientGrowsTheBuffer) {
  EXPECT_EQ(TinyTaskLines(BucketSpec(14, true), TwoLayers(), 11, 16), kGrowth);
  const Schedule schedule = LowerTiny(BucketSpec(14, true), TwoLayers());
  EXPECT_EQ(schedule.buffer(BufferId(17)).bytes, Bytes(30));
}

// Nothing has been flushed when the first gradient is too large: the host waits for nothing.
TEST(LowerBucketTest, OversizeFirstGradientWaitsForNothing) {
  const Schedule schedule = LowerTiny(BucketSpec(4, true), TwoLayers());
  const TaskId first = NthTask(schedule, TaskKind::kHostSynchronize);
  EXPECT_TRUE(schedule.waits(first).empty());
  EXPECT_EQ(schedule.memory(first).size(), 2U);
}

// Buckets go back at the end of each backward, so w1 is too large for them in every micro-step.
TEST(LowerBucketTest, BucketsStartAnewInEachBackward) {
  PlanSpec spec = BucketSpec(14, true);
  spec.options.gradient_accumulation_steps = 2;
  const Schedule schedule = LowerTiny(spec, TwoLayers());
  std::size_t growths = 0;
  for (const Task& task : schedule.tasks()) {
    growths += task.kind == TaskKind::kHostSynchronize ? 1 : 0;
  }
  EXPECT_EQ(growths, 2U);
}

/// Four gradients of four elements each, in the order p3 to p0.
Graph FourGradients() {
  return ParseGraphText(R"(
graph four 1 tokens
param p0 bfloat16[4]
param p1 bfloat16[4]
param p2 bfloat16[4]
param p3 bfloat16[4]
forward
  l: bfloat16[] = my::loss(p0, p1, p2, p3)
  loss l
backward
  tangent t: bfloat16[] of l
  g3: bfloat16[4] = my::grad(t)
  g2: bfloat16[4] = my::grad(t)
  g1: bfloat16[4] = my::grad(t)
  g0: bfloat16[4] = my::grad(t)
  gradient p0 = g0
  gradient p1 = g1
  gradient p2 = g2
  gradient p3 = g3
)");
}

/// The flushes that compute waits for before it goes on to fill a buffer again, by label.
std::vector<std::string> FlushesWaitedFor(const PlanSpec& spec) {
  const Schedule schedule = LowerTiny(spec, FourGradients());
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    const TaskId id(i);
    if (schedule.task(id).kind != TaskKind::kWait) {
      continue;
    }
    const TaskId waited = schedule.waits(id)[0];
    if (schedule.task(waited).kind == TaskKind::kStoreReduced) {
      const CollectiveId flushed(schedule.work(schedule.task(waited).work).subject);
      labels.push_back("p" + std::to_string(schedule.collective(flushed).calls[0].param.index()));
    }
  }
  return labels;
}

// Each gradient flushes the one before it. p1 goes into the buffer that p3's flush used, the flush
// before last; p0 into p2's.
TEST(LowerBucketTest, DoubleBufferWaitsForTheFlushBeforeLast) {
  EXPECT_THAT(FlushesWaitedFor(BucketSpec(4, true)), testing::ElementsAre("p3", "p2"));
}

TEST(LowerBucketTest, SingleBufferWaitsForTheLastFlush) {
  EXPECT_THAT(FlushesWaitedFor(BucketSpec(4, false)), testing::ElementsAre("p3", "p2", "p1"));
}

// Two gradients share a buffer: the second one's copy does not wait a second time.
TEST(LowerBucketTest, OneWaitForABufferIsEnough) {
  EXPECT_THAT(FlushesWaitedFor(BucketSpec(8, false)), testing::ElementsAre("p3"));
}

TEST(LowerBucketTest, FlushIsOneCallAParameterInOneGroup) {
  const Collective flush = LowerTiny(BucketSpec(16, true), FourGradients()).collectives()[0];
  EXPECT_EQ(flush.calls.size(), 4U);
  EXPECT_EQ(flush.launches(), 4U);
}

TEST(LowerBucketTest, FlushMayBeOneCallOverTheBucket) {
  PlanSpec spec = BucketSpec(16, true);
  spec.options.flush_collectives = FlushCollectives::kOnePerBucket;
  const Collective flush = LowerTiny(spec, FourGradients()).collectives()[0];
  EXPECT_EQ(flush.calls.size(), 4U);
  EXPECT_EQ(flush.launches(), 1U);
  EXPECT_EQ(flush.payload(), Bytes(32));
}

/// Gradients of two dtypes in turn.
Graph TwoDTypes() {
  return ParseGraphText(R"(
graph mixed 1 tokens
param a float32[4]
param b bfloat16[4]
param c float32[4]
forward
  l: float32[] = my::loss(a, b, c)
  loss l
backward
  tangent t: float32[] of l
  gc: float32[4] = my::grad(t)
  gb: bfloat16[4] = my::grad(t)
  ga: float32[4] = my::grad(t)
  gradient a = ga
  gradient b = gb
  gradient c = gc
)");
}

// 1.2, step 1: the dtype picks the bucket. Both are flushed at the end, in the order of DType.
TEST(LowerBucketTest, EachDTypeHasItsOwnBucket) {
  const Schedule schedule = LowerTiny(BucketSpec(8, true), TwoDTypes());
  const auto collectives = schedule.collectives();
  EXPECT_EQ(collectives[0].dtype, DType::kBFloat16);
  EXPECT_EQ(collectives[0].calls, (std::vector<CollectiveCall>{{ParamId(1), 4, 0}}));
  EXPECT_EQ(collectives[1].dtype, DType::kFloat32);
  EXPECT_EQ(collectives[1].calls,
            (std::vector<CollectiveCall>{{ParamId(2), 4, 0}, {ParamId(0), 4, 4}}));
}

TEST(LowerBucketTest, OverflowFlushesItsOwnDTypeOnly) {
  const Schedule schedule = LowerTiny(BucketSpec(4, true), TwoDTypes());
  const Collective* first = schedule.FindCollective(NthTask(schedule, TaskKind::kReduce));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->calls, (std::vector<CollectiveCall>{{ParamId(2), 4, 0}}));
}

}  // namespace
}  // namespace dcsim
