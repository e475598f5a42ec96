#include <gtest/gtest.h>

#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

// Schedules of TwoLayers over two ranks as DeepCompile 0.19.6 makes them (its section numbers:
// csrc/compile, read in "What DeepCompile does", 1.1 to 1.5). Sizes are those of tiny_graphs.h.
//
// Residents: shards of w1 and w2, 8 + 3 elements of bfloat16, 22 B; the gradient partition alike
// (1.5: permanent); float32 master weights and both moments, 44 B each; the input, 12 B. b6 is the
// loss, which the caller holds until the next step's forward has returned.
//
//   0        w1 is gathered, padded to 16 elements, into a buffer of the gather stream's pool
//   1 to 3   compute waits for it before its first use, and it is released after its last
//   4        a gather starts behind compute's position, task 2 (1.5, allgatherParam)
//   8, 9     the new loss; that of the step before goes
//   12 to 14 g2 is there: its bucket's two buffers, then the copy behind compute (1.2, 4 to 6)
//   15 to 18 w2 is gathered a second time; w1 is not used in the backward
//   21, 22   flush at the end of the backward: division in place of 6 + 16 elements, read and
//            written, then one reduce-scatter a parameter into the partition
//   23       compute waits for the copies, and the gradients go
//   24       the host waits for the reduce stream, and the buckets go
//   25 to 27 11 elements: cast 2 + 4 B, fused AdamW 28 B, cast back 4 + 2 B each
//   28       the next step's first gather starts behind the new weights
constexpr char kZero3[] = R"(
resident b0 parameters 22 B
resident b1 gradient partition 22 B
resident b2 master weights 44 B
resident b3 optimizer states 44 B
resident b4 optimizer states 44 B
resident b5 optimizer states 4 B
resident b6 inputs 12 B
0 gather all-gather w1 [32 B] r b0 w b8 +b8
1 compute wait for all-gather w1 after 0
2 compute aten::mm r b6,b8 w b9 +b9
3 host release w1 -b8
4 gather all-gather w2 [12 B] after 2 r b0 w b10 +b10
5 compute wait for all-gather w2 after 4
6 compute aten::mm r b9,b10 w b11 +b11
7 host release w2 -b10
8 compute aten::sum r b11 w b7 +b7 -b11
9 host free -b7
10 compute set-tangents [2 B] w b12 +b12
11 compute aten::fill r b12 w b13 +b13 -b12
12 compute aten::mm r b9,b13 w b14 +b14 -b9
13 host allocate +b15 +b16
14 copy reduce-grad-copy w2 [20 B] after 12 r b14 w b15
15 gather all-gather w2 [12 B] after 12 r b0 w b17 +b17
16 compute wait for all-gather w2 after 15
17 compute aten::mm r b13,b17 w b18 +b18 -b13
18 host release w2 -b17
19 compute aten::mm r b6,b18 w b19 +b19 -b18
20 copy reduce-grad-copy w1 [60 B] after 19 r b19 w b15
21 reduce pre-divide 2 tensors [88 B] after 20 w b15
22 reduce reduce 2 tensors [44 B] r b15 w b1
23 compute wait for reduce-grad-copy w1 after 20 -b14 -b19
24 host end-backward after 22 -b15 -b16
25 compute cast-gradients [66 B] r b1 w b20 +b20
26 compute optimizer-step [308 B] r b20 w b2,b3,b4
27 compute store-params [66 B] r b2 w b0 -b20
28 gather wait for store-params after 27
)";

TEST(LowerZero3Test, GathersUsesReleasesAndScatters) {
  EXPECT_EQ(TinyScheduleText(TinySpec(3), TwoLayers()), kZero3);
}

// The second of two micro-steps (1.5, flush): the partition holds the first one's gradients, so
// the reduce-scatters receive 3 + 8 elements into a temporary, which is then added: 22 B read, 22 B
// read and 22 B written. Parameters are gathered again, the first one behind the end of the first
// backward (23); the first loss, b11, is freed, the second, b6, goes on to the next step.
constexpr char kSecondMicroStep[] = R"(
25 gather all-gather w1 [32 B] after 23 r b0 w b21 +b21
26 compute wait for all-gather w1 after 25
27 compute aten::mm r b6,b21 w b22 +b22
28 host release w1 -b21
29 gather all-gather w2 [12 B] after 27 r b0 w b23 +b23
30 compute wait for all-gather w2 after 29
31 compute aten::mm r b22,b23 w b24 +b24
32 host release w2 -b23
33 compute aten::sum r b24 w b7 +b7 -b24
34 host free -b12
35 compute set-tangents [2 B] w b25 +b25
36 compute aten::fill r b25 w b26 +b26 -b25
37 compute aten::mm r b22,b26 w b27 +b27 -b22
38 host allocate +b28 +b29
39 copy reduce-grad-copy w2 [20 B] after 37 r b27 w b28
40 gather all-gather w2 [12 B] after 37 r b0 w b30 +b30
41 compute wait for all-gather w2 after 40
42 compute aten::mm r b26,b30 w b31 +b31 -b26
43 host release w2 -b30
44 compute aten::mm r b6,b31 w b32 +b32 -b31
45 copy reduce-grad-copy w1 [60 B] after 44 r b32 w b28
46 reduce pre-divide 2 tensors [88 B] after 45 w b28
47 reduce reduce 2 tensors [44 B] r b28 w b33 +b33
48 reduce store-reduced 2 tensors [66 B] r b33 w b1 -b33
49 compute wait for reduce-grad-copy w1 after 45 -b27 -b32
50 host end-backward after 48 -b28 -b29
)";

TEST(LowerZero3Test, LaterMicroStepsAddToThePartition) {
  PlanSpec spec = TinySpec(3);
  spec.options.gradient_accumulation_steps = 2;
  EXPECT_EQ(TinyTaskLines(spec, TwoLayers(), 25, 50), kSecondMicroStep);
}

// w2 is gathered where w1 is first used: before op 0 of the forward, with nothing to wait for, and
// before op 0 of the backward, behind the tangent. It is used, waited for and released as before.
constexpr char kOneAhead[] = R"(
0 gather all-gather w1 [32 B] r b0 w b8 +b8
1 gather all-gather w2 [12 B] r b0 w b9 +b9
2 compute wait for all-gather w1 after 0
3 compute aten::mm r b6,b8 w b10 +b10
4 host release w1 -b8
5 compute wait for all-gather w2 after 1
6 compute aten::mm r b10,b9 w b11 +b11
7 host release w2 -b9
8 compute aten::sum r b11 w b7 +b7 -b11
9 host free -b7
10 compute set-tangents [2 B] w b12 +b12
11 gather all-gather w2 [12 B] after 10 r b0 w b13 +b13
12 compute aten::fill r b12 w b14 +b14 -b12
)";

TEST(LowerZero3Test, GathersAheadAreIssuedEarlier) {
  PlanSpec spec = TinySpec(3);
  spec.gather_ahead = 1;
  EXPECT_EQ(TinyTaskLines(spec, TwoLayers(), 0, 12), kOneAhead);
}

// A persistent parameter (1.5): w2's buffer b5 is resident; the first use of the step gathers into
// it, nothing releases it, and no later use of the step gathers or waits.
constexpr char kKeepsW2[] = R"(
4 gather all-gather w2 [12 B] after 2 r b0 w b6
5 compute wait for all-gather w2 after 4
6 compute aten::mm r b10,b6 w b11 +b11
7 compute aten::sum r b11 w b12 +b12 -b11
)";
constexpr char kKeepsW2InBackward[] = R"(
13 copy reduce-grad-copy w2 [20 B] after 11 r b15 w b16
14 compute aten::mm r b14,b6 w b18 +b18 -b14
15 compute aten::mm r b7,b18 w b19 +b19 -b18
)";
constexpr char kKeepsW2InTheSecondMicroStep[] = R"(
21 gather all-gather w1 [32 B] after 19 r b0 w b20 +b20
22 compute wait for all-gather w1 after 21
23 compute aten::mm r b7,b20 w b21 +b21
24 host release w1 -b20
25 compute aten::mm r b21,b6 w b22 +b22
26 compute aten::sum r b22 w b8 +b8 -b22
)";

TEST(LowerZero3Test, KeptParametersAreGatheredOnceAStep) {
  PlanSpec spec = TinySpec(3);
  spec.keep_gathered.patterns = {"w2"};
  spec.options.gradient_accumulation_steps = 2;
  EXPECT_EQ(TinyTaskLines(spec, TwoLayers(), 4, 7), kKeepsW2);
  EXPECT_EQ(TinyTaskLines(spec, TwoLayers(), 13, 15), kKeepsW2InBackward);
  EXPECT_EQ(TinyTaskLines(spec, TwoLayers(), 21, 26), kKeepsW2InTheSecondMicroStep);
}

/// The buffers of gathered parameters that are freed again.
std::vector<Buffer> GatheredBuffers(const Schedule& schedule) {
  std::vector<Buffer> buffers;
  for (const Buffer& buffer : schedule.buffers()) {
    if (buffer.buffer_class == BufferClass::kGatheredParameter && !buffer.resident) {
      buffers.push_back(buffer);
    }
  }
  return buffers;
}

TEST(LowerZero3Test, GatheredBuffersComeFromTheGatherStreamsPool) {
  const auto buffers = GatheredBuffers(LowerTiny(TinySpec(3), TwoLayers()));
  ASSERT_EQ(buffers.size(), 3U);
  for (const Buffer& buffer : buffers) {
    EXPECT_EQ(buffer.pool, static_cast<std::uint8_t>(StreamRole::kGather));
    EXPECT_EQ(buffer.recorded_streams, 0) << "event_ordered is the default";
  }
}

// record_stream(compute) before the free: the block is free again once the GPU has passed the use.
TEST(LowerZero3Test, RecordStreamNamesTheComputeStream) {
  PlanSpec spec = TinySpec(3);
  spec.options.release = ReleaseMode::kRecordStream;
  for (const Buffer& buffer : GatheredBuffers(LowerTiny(spec, TwoLayers()))) {
    EXPECT_EQ(buffer.recorded_streams, StreamBit(StreamRole::kCompute));
  }
}

TEST(LowerZero3Test, RecordStreamChangesNoTask) {
  PlanSpec spec = TinySpec(3);
  spec.options.release = ReleaseMode::kRecordStream;
  EXPECT_EQ(TinyScheduleText(spec, TwoLayers()), kZero3);
}

/// Communicators of all collectives of a kind of task.
std::vector<int> Communicators(const Schedule& schedule, TaskKind kind) {
  std::vector<int> communicators;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    if (schedule.task(TaskId(i)).kind == kind) {
      communicators.push_back(schedule.FindCollective(TaskId(i))->communicator);
    }
  }
  return communicators;
}

// 1.1: one communicator serves both streams.
TEST(LowerZero3Test, GathersAndReductionsShareACommunicator) {
  const Schedule schedule = LowerTiny(TinySpec(3), TwoLayers());
  EXPECT_EQ(Communicators(schedule, TaskKind::kAllGather), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(Communicators(schedule, TaskKind::kReduce), (std::vector<int>{0}));
}

TEST(LowerZero3Test, SecondCommunicatorIsForReductions) {
  PlanSpec spec = TinySpec(3);
  spec.options.communicators = 2;
  spec.options.gradient_clipping = 1.0;
  const Schedule schedule = LowerTiny(spec, TwoLayers());
  EXPECT_EQ(Communicators(schedule, TaskKind::kAllGather), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(Communicators(schedule, TaskKind::kReduce), (std::vector<int>{1}));
  EXPECT_EQ(Communicators(schedule, TaskKind::kReduceNorm), (std::vector<int>{1}));
}

}  // namespace
}  // namespace dcsim
