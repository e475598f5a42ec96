// Launches of Triton kernels, on the GPU of gpu_with_kernels.h: 100 multiprocessors, 2 TB/s.

#include "model/cost/launch_time.h"

#include <gtest/gtest.h>

#include "model/cost/kernel_models.h"
#include "model/cost/kernel_traits.h"
#include "model/ir/graph_reader.h"
#include "tests/model/cost/gpu_with_kernels.h"
#include "tests/support/compiled_document.h"

namespace dcsim {
namespace {

constexpr OpId kRelu(1);
constexpr OpId kTotal(2);

GpuSpec Gpu() {
  GpuSpec gpu = GpuWithKernels();
  gpu.triton = std::make_shared<TritonRates>(TritonRates{.pointwise = 0.5,
                                                         .tiles = 0.25,
                                                         .reduction = 0.25,
                                                         .outer_reduction = 0.125,
                                                         .persistent_reduction = 1,
                                                         .mixed_reduction = 0.5,
                                                         .full_threads = 1e-6,
                                                         .trigonometric_per_second = 1e9,
                                                         .error_functions_per_second = 1e8,
                                                         .exponentials_per_second = 2e8,
                                                         .online_softmax_per_second = 1e9,
                                                         .start = Duration::FromNs(1000)});
  return gpu;
}

Graph Moving(OpId op, std::int64_t read, std::int64_t written) {
  Graph graph = CompiledGraph();
  graph.ops[op.index()].launch->reads.front().bytes = Bytes(read);
  graph.ops[op.index()].launch->writes.front().bytes = Bytes(written);
  return graph;
}

// 3 MB at half of 2 TB/s.
TEST(LaunchTimeTest, BytesAtTheShareOfTheirKind) {
  EXPECT_EQ(KernelTime(TraitsOf(Moving(kRelu, 2'000'000, 1'000'000), kRelu), Gpu()).ns(), 4'000);
  EXPECT_EQ(TraitsOf(Moving(kRelu, 2'000'000, 1'000'000), kRelu).bytes, Bytes(3'000'000));
}

TEST(LaunchTimeTest, ReductionHasItsOwnShare) {
  EXPECT_EQ(KernelTime(TraitsOf(Moving(kTotal, 999'500, 500), kTotal), Gpu()).ns(), 3'000);
}

// 3 MB: 3 us at half of 2 TB/s, 6 at a quarter, 12 at an eighth, after the start.
TEST(LaunchTimeTest, ShareFollowsTheBlocks) {
  Graph graph = Moving(kRelu, 2'000'000, 1'000'000);
  KernelConfig& blocks = graph.kernels[0].configs.front();
  const auto time = [&] { return KernelTime(TraitsOf(graph, kRelu), Gpu()).ns(); };
  blocks["YBLOCK"] = 32;
  EXPECT_EQ(time(), 7'000);
  graph.kernels[0].kind = KernelKind::kReduction;
  blocks["XBLOCK"] = 8;
  EXPECT_EQ(time(), 7'000);
  blocks["XBLOCK"] = 16;
  EXPECT_EQ(time(), 13'000);
  graph.kernels[0].kind = KernelKind::kPersistentReduction;
  EXPECT_EQ(time(), 2'500);
  blocks["RSPLIT_SIZE"] = 16;
  EXPECT_EQ(time(), 13'000);
  graph.kernels[0].math.mixes_layouts = true;
  EXPECT_EQ(time(), 4'000);
  graph.kernels[0].kind = KernelKind::kReduction;
  EXPECT_EQ(time(), 4'000);
}

TEST(LaunchTimeTest, InductorSaysWhichReductionsMixLayouts) {
  Json document = CompiledDocument();
  document["kernels"][0]["source"] = "    reduction_hint=ReductionHint.INNER,\n";
  document["kernels"][1]["source"] = "    reduction_hint=ReductionHint.DEFAULT,\n";
  const Graph graph = ParseGraph(document.dump(), "small.json");
  EXPECT_FALSE(graph.kernels[0].math.mixes_layouts);
  EXPECT_TRUE(graph.kernels[1].math.mixes_layouts);
}

// Of 100 * 2048 threads a fourth are enough, 51,200. Four blocks of four warps have 512 of them.
TEST(LaunchTimeTest, FewThreadsReachLess) {
  const Graph graph = Moving(kRelu, 5'000, 0);
  GpuSpec gpu = Gpu();
  TritonRates rates = *gpu.triton;
  rates.full_threads = 0.25;
  gpu.triton = std::make_shared<TritonRates>(rates);
  EXPECT_EQ(KernelTime(TraitsOf(graph, kRelu), gpu).ns(), 1'000 + 5 * 51'200 / 512);
}

// One row of 16 elements in blocks of 4: its second loop finds in the cache what fits it.
TEST(LaunchTimeTest, SecondLoopReadsAgainWhatLeavesTheCache) {
  const std::int64_t fits = 50'000'000;
  EXPECT_EQ(LaunchedBytes(TraitsOf(Moving(kTotal, fits, 0), kTotal), Gpu()), Bytes(fits));
  const std::int64_t leaves = 60'000'000;
  EXPECT_EQ(LaunchedBytes(TraitsOf(Moving(kTotal, leaves, 0), kTotal), Gpu()), Bytes(2 * leaves));
  Graph held = Moving(kTotal, leaves, 0);
  held.kernels[1].configs.front()["R0_BLOCK"] = 16;  // no second round
  EXPECT_EQ(LaunchedBytes(TraitsOf(held, kTotal), Gpu()), Bytes(leaves));
}

// 16 elements with a sine and a cosine each, at one a ns; an online softmax of 16.
TEST(LaunchTimeTest, WhatIsComputedTakesItsTime) {
  Json document = CompiledDocument();
  document["kernels"][0]["source"] = "tmp1 = tl_math.cos(tmp0)\ntmp2 = tl_math.sin(tmp0)\n";
  document["kernels"][1]["source"] = "triton_helpers.online_softmax_combine(a, b, c, False)";
  const Graph graph = ParseGraph(document.dump(), "small.json");
  EXPECT_EQ(KernelTime(TraitsOf(graph, kRelu), Gpu()).ns(), 1'032);
  EXPECT_EQ(KernelTime(TraitsOf(graph, kTotal), Gpu()).ns(), 1'016);
}

// 16 elements: an error function each, at one in 10 ns, and an exponential each, at one in 5 ns.
TEST(LaunchTimeTest, ErrorFunctionsAndExponentialsTakeTheirTime) {
  Json document = CompiledDocument();
  document["kernels"][0]["source"] = "tmp1 = libdevice.erf(tmp0)\ntmp2 = libdevice.exp(tmp0)\n";
  const Graph graph = ParseGraph(document.dump(), "small.json");
  EXPECT_EQ(KernelTime(TraitsOf(graph, kRelu), Gpu()).ns(), 1'240);
}

TEST(LaunchTimeTest, ExponentialsOfAnOnlineSoftmaxAreInItsRate) {
  Json document = CompiledDocument();
  document["kernels"][1]["source"] =
      "tmp1 = libdevice.exp(tmp0)\ntriton_helpers.online_softmax_combine(a, b, c, False)";
  const Graph graph = ParseGraph(document.dump(), "small.json");
  EXPECT_EQ(KernelTime(TraitsOf(graph, kTotal), Gpu()).ns(), 1'016);
}

TEST(LaunchTimeTest, WithoutRatesAllIsMemory) {
  GpuSpec gpu = GpuWithKernels();
  const double share = gpu.bandwidth_efficiency;
  EXPECT_DOUBLE_EQ(*LaunchSeconds(TraitsOf(Moving(kRelu, 2'000'000, 0), kRelu), gpu),
                   2'000'000 / (2e12 * share));
}

}  // namespace
}  // namespace dcsim
