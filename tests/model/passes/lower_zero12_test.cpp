#include <gtest/gtest.h>

#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

// Schedules of TwoLayers over two ranks as DeepCompile 0.19.6 makes them (sections 1.2 to 1.4 of
// "What DeepCompile does"). Every rank holds all weights, 20 elements of bfloat16; 20 is a multiple
// of 2 * ranks, so a partition has 10 elements: 20 B, or 40 B in float32.
//
//   0 to 3   the forward; ops read the weights in place
//   4        ZeRO-1's prologue at the boundary: the partition's gradient, zeroed (1.3)
//   7 to 12  gradients into the bucket as they come
//   13       20 elements, read and written
//   14       all-reduce in place, one call a parameter; not reduce-scatter (1.3)
//   15       each rank copies its own slices: 10 elements, read and written
//   18       the partition becomes float32 and goes back (grad target lifetime, 1.3)
//   21, 22   all ranks get the new weights: one in-place all-gather; compute waits for it
constexpr char kZero1[] = R"(
resident b0 parameters 40 B
resident b1 master weights 40 B
resident b2 optimizer states 40 B
resident b3 optimizer states 40 B
resident b4 optimizer states 4 B
resident b5 inputs 12 B
0 compute aten::mm r b5,b0 w b7 +b7
1 compute aten::mm r b7,b0 w b8 +b8
2 compute aten::sum r b8 w b6 +b6 -b8
3 host free -b6
4 compute clear-gradients [20 B] w b9 +b9
5 compute set-tangents [2 B] w b10 +b10
6 compute aten::fill r b10 w b11 +b11 -b10
7 compute aten::mm r b7,b11 w b12 +b12 -b7
8 host allocate +b13 +b14
9 copy reduce-grad-copy w2 [20 B] after 7 r b12 w b13
10 compute aten::mm r b11,b0 w b15 +b15 -b11
11 compute aten::mm r b5,b15 w b16 +b16 -b15
12 copy reduce-grad-copy w1 [60 B] after 11 r b16 w b13
13 reduce pre-divide 2 tensors [80 B] after 12 w b13
14 reduce reduce 2 tensors [40 B] w b13
15 reduce store-reduced 2 tensors [40 B] r b13 w b9
16 compute wait for reduce-grad-copy w1 after 12 -b12 -b16
17 host end-backward after 15 -b13 -b14
18 compute cast-gradients [60 B] r b9 w b17 +b17 -b9
19 compute optimizer-step [280 B] r b17 w b1,b2,b3
20 compute store-params [60 B] r b1 w b0 -b17
21 reduce gather-updated [40 B] after 20 w b0
22 compute wait for gather-updated after 21
)";

TEST(LowerZero1Test, AllReducesIntoThePartitionOfTheStep) {
  EXPECT_EQ(TinyScheduleText(TinySpec(1), TwoLayers()), kZero1);
}

// Two micro-steps (1.3). The first keeps g2 (b11) and g1 (b13) whole: no bucket, no reduction, the
// end of its backward waits for nothing. The second adds its own gradients to them (read, read,
// written: 3 * 10 B and 3 * 30 B), gives its own back at once, and puts the sums into the bucket.
constexpr char kZero1Accumulated[] = R"(
4 compute set-tangents [2 B] w b10 +b10
5 compute aten::fill r b10 w b11 +b11 -b10
6 compute aten::mm r b7,b11 w b12 +b12 -b7
7 compute aten::mm r b11,b0 w b13 +b13 -b11
8 compute aten::mm r b5,b13 w b14 +b14 -b13
9 host end-backward
10 compute aten::mm r b5,b0 w b15 +b15
11 compute aten::mm r b15,b0 w b16 +b16
12 compute aten::sum r b16 w b6 +b6 -b16
13 host free -b9
14 compute clear-gradients [20 B] w b17 +b17
15 compute set-tangents [2 B] w b18 +b18
16 compute aten::fill r b18 w b19 +b19 -b18
17 compute aten::mm r b15,b19 w b20 +b20 -b15
18 compute accumulate w2 [30 B] r b20 w b12
19 host free -b20
20 host allocate +b21 +b22
21 copy reduce-grad-copy w2 [20 B] after 18 r b12 w b21
22 compute aten::mm r b19,b0 w b23 +b23 -b19
23 compute aten::mm r b5,b23 w b24 +b24 -b23
24 compute accumulate w1 [90 B] r b24 w b14
25 host free -b24
26 copy reduce-grad-copy w1 [60 B] after 24 r b14 w b21
27 reduce pre-divide 2 tensors [80 B] after 26 w b21
28 reduce reduce 2 tensors [40 B] w b21
29 reduce store-reduced 2 tensors [40 B] r b21 w b17
30 compute wait for reduce-grad-copy w1 after 26 -b12 -b14
31 host end-backward after 29 -b21 -b22
)";

TEST(LowerZero1Test, KeepsWholeGradientsUntilTheLastMicroStep) {
  PlanSpec spec = TinySpec(1);
  spec.options.gradient_accumulation_steps = 2;
  EXPECT_EQ(TinyTaskLines(spec, TwoLayers(), 4, 31), kZero1Accumulated);
}

// ZeRO-2 (1.4): the partition b1 is permanent, so nothing clears it, and the cast does not give it
// back.
constexpr char kZero2[] = R"(
resident b0 parameters 40 B
resident b1 gradient partition 20 B
resident b2 master weights 40 B
resident b3 optimizer states 40 B
resident b4 optimizer states 40 B
resident b5 optimizer states 4 B
resident b6 inputs 12 B
0 compute aten::mm r b6,b0 w b8 +b8
1 compute aten::mm r b8,b0 w b9 +b9
2 compute aten::sum r b9 w b7 +b7 -b9
3 host free -b7
4 compute set-tangents [2 B] w b10 +b10
5 compute aten::fill r b10 w b11 +b11 -b10
6 compute aten::mm r b8,b11 w b12 +b12 -b8
7 host allocate +b13 +b14
8 copy reduce-grad-copy w2 [20 B] after 6 r b12 w b13
9 compute aten::mm r b11,b0 w b15 +b15 -b11
10 compute aten::mm r b6,b15 w b16 +b16 -b15
11 copy reduce-grad-copy w1 [60 B] after 10 r b16 w b13
12 reduce pre-divide 2 tensors [80 B] after 11 w b13
13 reduce reduce 2 tensors [40 B] w b13
14 reduce store-reduced 2 tensors [40 B] r b13 w b1
15 compute wait for reduce-grad-copy w1 after 11 -b12 -b16
16 host end-backward after 14 -b13 -b14
17 compute cast-gradients [60 B] r b1 w b17 +b17
18 compute optimizer-step [280 B] r b17 w b2,b3,b4
19 compute store-params [60 B] r b2 w b0 -b17
20 reduce gather-updated [40 B] after 19 w b0
21 compute wait for gather-updated after 20
)";

TEST(LowerZero2Test, AllReducesIntoAPermanentPartition) {
  EXPECT_EQ(TinyScheduleText(TinySpec(2), TwoLayers()), kZero2);
}

// The second micro-step reduces again, all of it, and adds its slices: 10 elements read twice and
// written, 60 B.
constexpr char kZero2Accumulated[] = R"(
24 host allocate +b23 +b24
25 copy reduce-grad-copy w2 [20 B] after 23 r b22 w b23
26 compute aten::mm r b21,b0 w b25 +b25 -b21
27 compute aten::mm r b6,b25 w b26 +b26 -b25
28 copy reduce-grad-copy w1 [60 B] after 27 r b26 w b23
29 reduce pre-divide 2 tensors [80 B] after 28 w b23
30 reduce reduce 2 tensors [40 B] w b23
31 reduce store-reduced 2 tensors [60 B] r b23 w b1
)";

TEST(LowerZero2Test, ReducesInEveryMicroStepAndAdds) {
  PlanSpec spec = TinySpec(2);
  spec.options.gradient_accumulation_steps = 2;
  EXPECT_EQ(TinyTaskLines(spec, TwoLayers(), 24, 31), kZero2Accumulated);
}

// DeepCompile of DeepSpeed 0.17.1 reduces ZeRO-1's gradients as later releases do ZeRO-2's
// (z1.cpp).
TEST(LowerZero1Test, InEachMicroStepItIsTheScheduleOfZero2) {
  PlanSpec spec = TinySpec(1);
  spec.options.gradient_reduction = GradientReduction::kEachMicroStep;
  EXPECT_EQ(TinyScheduleText(spec, TwoLayers()), kZero2);
  spec.options.gradient_accumulation_steps = 2;
  EXPECT_EQ(TinyTaskLines(spec, TwoLayers(), 24, 31), kZero2Accumulated);
}

// reduce_scatter cuts each parameter into shards, as ZeRO-3 does: slices of 6 and 16 elements in
// the bucket, partitions of 3 + 8. The first micro-step's scatter writes the partition itself, the
// second's a temporary that is added; the weights have room for the padding, and the new ones are
// gathered by one call a parameter.
constexpr char kScattered[] = R"(
12 reduce pre-divide 2 tensors [88 B] after 11 w b14
13 reduce reduce 2 tensors [44 B] r b14 w b1
14 compute wait for reduce-grad-copy w1 after 11 -b13 -b17
)";
constexpr char kScatteredAgain[] = R"(
28 reduce pre-divide 2 tensors [88 B] after 27 w b23
29 reduce reduce 2 tensors [44 B] r b23 w b27 +b27
30 reduce store-reduced 2 tensors [66 B] r b27 w b1 -b27
)";
constexpr char kGatheredByParameter[] = R"(
36 reduce gather-updated 2 tensors [44 B] after 35 w b0
37 compute wait for gather-updated 2 tensors after 36
)";

TEST(LowerZero2Test, ReduceScatterCutsByParameter) {
  PlanSpec spec = TinySpec(2);
  spec.options.reduce_collective = ReduceCollective::kReduceScatter;
  spec.options.gradient_accumulation_steps = 2;
  EXPECT_EQ(TinyTaskLines(spec, TwoLayers(), 12, 14), kScattered);
  EXPECT_EQ(TinyTaskLines(spec, TwoLayers(), 28, 30), kScatteredAgain);
  EXPECT_EQ(TinyTaskLines(spec, TwoLayers(), 36, 37), kGatheredByParameter);
}

TEST(LowerZero2Test, CollectiveKindFollowsTheOption) {
  PlanSpec spec = TinySpec(2);
  EXPECT_EQ(LowerTiny(spec, TwoLayers()).collectives()[0].kind, CollectiveKind::kAllReduce);
  spec.options.reduce_collective = ReduceCollective::kReduceScatter;
  EXPECT_EQ(LowerTiny(spec, TwoLayers()).collectives()[0].kind, CollectiveKind::kReduceScatter);
}

}  // namespace
}  // namespace dcsim
