#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

// Gradients that the bucket cannot take as they are, over two ranks.

/// TwoLayers with a transposed gradient of w1: strides 1 and 3 instead of 5 and 1.
Graph TransposedGradient() {
  Graph graph = TwoLayers();
  for (Value& value : graph.values) {
    if (value.name == "g1") {
      value.strides = {1, 3};
    }
  }
  return graph;
}

// The bucket takes flat gradients (1.2, step 5: "the contiguous, flat gradient"): a copy is made,
// 30 B read and written, the transposed one goes at once, and the copy stays until the flush.
constexpr char kMadeContiguous[] = R"(
19 compute aten::mm r b6,b18 w b19 +b19 -b18
20 compute make-contiguous w1 [60 B] r b19 w b20 +b20
21 host free -b19
22 copy reduce-grad-copy w1 [60 B] after 20 r b20 w b15
23 reduce pre-divide 2 tensors [88 B] after 22 w b15
24 reduce reduce 2 tensors [44 B] r b15 w b1
25 compute wait for reduce-grad-copy w1 after 22 -b14 -b20
)";

TEST(LowerGradientTest, TransposedGradientIsCopiedFirst) {
  EXPECT_EQ(TinyTaskLines(TinySpec(3), TransposedGradient(), 19, 25), kMadeContiguous);
}

// ZeRO-1 keeps the copy of the first micro-step, b14, and adds the transposed gradient of the
// second to it: no second copy.
constexpr char kKeptContiguous[] = R"(
8 compute aten::mm r b5,b13 w b14 +b14 -b13
9 compute make-contiguous w1 [60 B] r b14 w b15 +b15
10 host free -b14
11 host end-backward
)";
constexpr char kAddedTransposed[] = R"(
25 compute aten::mm r b5,b24 w b25 +b25 -b24
26 compute accumulate w1 [90 B] r b25 w b15
27 host free -b25
28 copy reduce-grad-copy w1 [60 B] after 26 r b15 w b22
)";

TEST(LowerGradientTest, TransposedGradientIsKeptAsACopy) {
  PlanSpec spec = TinySpec(1);
  spec.options.gradient_accumulation_steps = 2;
  EXPECT_EQ(TinyTaskLines(spec, TransposedGradient(), 8, 11), kKeptContiguous);
  EXPECT_EQ(TinyTaskLines(spec, TransposedGradient(), 25, 28), kAddedTransposed);
}

/// Both gradients are halves of one tensor.
Graph SharedStorage() {
  return ParseGraphText(R"(
graph shared 1 tokens
param a bfloat16[4]
param b bfloat16[4]
forward
  l: bfloat16[] = my::loss(a, b)
  loss l
backward
  tangent t: bfloat16[] of l
  g: bfloat16[8] = my::grad(t)
  ga: bfloat16[4] views g = aten::slice(g)
  gb: bfloat16[4] views g = aten::slice(g)
  gradient a = ga
  gradient b = gb
)");
}

// Each half is copied (8 B read and written), since adding to one in place must not depend on the
// other's life; the shared tensor b7 goes when the second copy has been issued.
constexpr char kHalves[] = R"(
3 compute my::grad r b7 w b8 +b8 -b7
4 host aten::slice
5 host allocate +b9 +b10
6 compute make-contiguous a [16 B] r b8 w b11 +b11
7 copy reduce-grad-copy a [16 B] after 6 r b11 w b9
8 host aten::slice
9 compute make-contiguous b [16 B] r b8 w b12 +b12
10 host free -b8
11 copy reduce-grad-copy b [16 B] after 9 r b12 w b9
)";

TEST(LowerGradientTest, HalvesOfOneTensorAreCopied) {
  EXPECT_EQ(TinyTaskLines(TinySpec(2), SharedStorage(), 3, 11), kHalves);
}

// In the second micro-step both halves are added to what was kept, b8 and b9, and the shared tensor
// b12 goes after the second addition.
constexpr char kAddedHalves[] = R"(
14 compute my::grad r b12 w b13 +b13 -b12
15 host aten::slice
16 compute accumulate a [24 B] r b13 w b9
17 host allocate +b14 +b15
18 copy reduce-grad-copy a [16 B] after 16 r b9 w b14
19 host aten::slice
20 compute accumulate b [24 B] r b13 w b10
21 host free -b13
22 copy reduce-grad-copy b [16 B] after 20 r b10 w b14
)";

TEST(LowerGradientTest, HalvesOfOneTensorAreAddedOneByOne) {
  PlanSpec spec = TinySpec(1);
  spec.options.gradient_accumulation_steps = 2;
  EXPECT_EQ(TinyTaskLines(spec, SharedStorage(), 14, 22), kAddedHalves);
}

// The gradient g is read again after it is complete: its memory stays until the last of both, the
// op (6) and the flush that drops the reference (11).
constexpr char kReadAgain[] = R"(
3 compute my::grad r b7 w b8 +b8 -b7
4 host allocate +b9 +b10
5 copy reduce-grad-copy w [16 B] after 3 r b8 w b9
6 compute my::norm r b8 w b11 +b11 -b11
7 reduce pre-divide w [16 B] after 5 w b9
8 reduce reduce w [8 B] w b9
9 reduce store-reduced w [8 B] r b9 w b1
10 compute wait for reduce-grad-copy w after 5 -b8
)";

TEST(LowerGradientTest, GradientThatIsReadAgainStays) {
  const Graph graph = ParseGraphText(R"(
graph again 1 tokens
param w bfloat16[4]
forward
  l: bfloat16[] = my::loss(w)
  loss l
backward
  tangent t: bfloat16[] of l
  g: bfloat16[4] = my::grad(t)
  n: bfloat16[] = my::norm(g)
  gradient w = g
)");
  EXPECT_EQ(TinyTaskLines(TinySpec(2), graph, 3, 10), kReadAgain);
}

// A bucket of one gradient: g is flushed by h's copy, and read by an op after that. It goes with
// that op, not with the flush.
constexpr char kOutlivesItsFlush[] = R"(
10 compute wait for reduce-grad-copy w after 5
11 copy reduce-grad-copy v [20 B] after 10 r b11 w b10
12 compute my::norm r b8 w b12 +b12 -b8 -b12
)";

TEST(LowerGradientTest, GradientMayOutliveItsFlush) {
  const Graph graph = ParseGraphText(R"(
graph outlives 1 tokens
param w bfloat16[4]
param v bfloat16[5]
forward
  l: bfloat16[] = my::loss(w, v)
  loss l
backward
  tangent t: bfloat16[] of l
  g: bfloat16[4] = my::grad(t)
  h: bfloat16[5] = my::grad(t)
  n: bfloat16[] = my::norm(g)
  gradient w = g
  gradient v = h
)");
  PlanSpec spec = TinySpec(2);
  spec.options.reduce_bucket = 5;
  EXPECT_EQ(TinyTaskLines(spec, graph, 10, 12), kOutlivesItsFlush);
}

// The loss is the parameter itself: its gradient is the tangent, which no op makes or reads. It is
// reduced before the backward's first op would come, and freed by the flush.
constexpr char kTangent[] = R"(
2 compute set-tangents [2 B] w b7 +b7
3 host allocate +b8 +b9
4 copy reduce-grad-copy w [4 B] after 2 r b7 w b8
5 reduce pre-divide w [4 B] after 4 w b8
6 reduce reduce w [2 B] w b8
7 reduce store-reduced w [4 B] r b8 w b1
8 compute wait for reduce-grad-copy w after 4 -b7
)";

TEST(LowerGradientTest, TangentMayBeTheGradient) {
  const Graph graph = ParseGraphText(R"(
graph tangent 1 tokens
param w bfloat16[]
forward
  l: bfloat16[] = my::loss(w)
  loss l
backward
  tangent t: bfloat16[] of l
  gradient w = t
)");
  EXPECT_EQ(TinyTaskLines(TinySpec(2), graph, 2, 8), kTangent);
}

/// Two pairs of graphs: the second pair's backward, which runs first, makes v's gradient.
Graph GraphBreak() {
  return ParseGraphText(R"(
graph broken 1 tokens
param w bfloat16[4]
param v bfloat16[8]
forward
  a: bfloat16[3] = my::op(w)
  output a
forward
  receive a
  l: bfloat16[] = my::loss(a, v)
  loss l
backward of 1
  tangent t: bfloat16[] of l
  gv: bfloat16[8] = my::grad(t)
  ga: bfloat16[3] = my::grad(t)
  pass ga of a
  gradient v = gv
backward of 0
  receive ga
  gw: bfloat16[4] = my::grad(ga)
  gradient w = gw
)");
}

// 1.2, end_backward: each backward graph flushes and makes the host wait; only the last one gives
// the buckets back. The loss of the step before (b5) goes after the second forward.
constexpr char kBroken[] = R"(
8 host free -b6
9 compute set-tangents [2 B] w b10 +b10
10 compute my::grad r b10 w b11 +b11
11 host allocate +b12 +b13
12 copy reduce-grad-copy v [32 B] after 10 r b11 w b12
13 compute my::grad r b10 w b14 +b14 -b10
14 reduce pre-divide v [32 B] after 12 w b12
15 reduce reduce v [16 B] r b12 w b1
16 compute wait for reduce-grad-copy v after 12 -b11
17 host end-backward after 15
18 compute my::grad r b14 w b15 +b15 -b14
19 copy reduce-grad-copy w [16 B] after 18 r b15 w b13
20 reduce pre-divide w [16 B] after 19 w b13
21 reduce reduce w [8 B] r b13 w b1
22 compute wait for reduce-grad-copy w after 19 -b15
23 host end-backward after 21 -b12 -b13
)";

TEST(LowerGradientTest, BucketsLiveUntilTheLastBackwardGraph) {
  EXPECT_EQ(TinyTaskLines(TinySpec(3), GraphBreak(), 8, 23), kBroken);
}

}  // namespace
}  // namespace dcsim
