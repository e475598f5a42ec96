// Batch norms that nobody has profiled, on the GPU of gpu_with_kernels.h: 100 multiprocessors, 1
// TB/s.

#include "model/cost/batch_norm_time.h"

#include <gtest/gtest.h>

#include "tests/model/cost/gpu_with_kernels.h"

namespace dcsim {
namespace {

std::int64_t ForwardTime(const std::string& shape) {
  return TimeOf(OneOp("input a " + shape, "y: " + shape + " = aten::_native_batch_norm_legit(a)"));
}

Graph Backward(const std::string& shape) {
  return OneOp("input g " + shape + "\ninput a " + shape,
               "y: " + shape + " = aten::native_batch_norm_backward(g, a)");
}

// Ten channels of 100,000 elements in 196 rounds of 512 threads: 1 us and 200 ns each, 4 MB being
// in the cache. Written in as many, 1,003,520 at 100 a ns.
TEST(BatchNormSecondsTest, AThreadBlockGoesThroughAChannelInRounds) {
  const std::string shape = "float32[1,10,100,1000]";
  EXPECT_EQ(ForwardTime(shape), 1'000 + 196 * 200 + 10'036);
  EXPECT_EQ(TimeOf(Backward(shape)), 2'000 + 196 * 400);
}

// 64 MB are not: 32 images of 10,000 places in 20 rounds each.
TEST(BatchNormSecondsTest, WhatTheCacheDoesNotHoldTakesMemory) {
  const std::string shape = "bfloat16[32,100,1000,10]";
  EXPECT_EQ(TimeOf(Backward(shape)), 2'000 + 640 * 800);
  EXPECT_EQ(ForwardTime(shape), 1'000 + 640 * 400 + 32 * 100 * 20 * 512 / 100);
}

// 1,000 channels of 25 places in 4 rounds of 16 images: two waves of four a multiprocessor, which
// keep each other waiting for 4 * 150 ns a round, and one of two. 32 thousand blocks of two images
// write them, one a ns.
TEST(BatchNormSecondsTest, ManyChannelsAreWavesOfThreadBlocks) {
  const std::string shape = "bfloat16[64,1000,5,5]";
  EXPECT_EQ(ForwardTime(shape), 2 * (1'000 + 4 * 600) + (1'000 + 4 * 300) + 32'000);
  EXPECT_EQ(TimeOf(Backward(shape)), 2 * (2'000 + 4 * 1'200) + (2'000 + 4 * 600));
}

// A million elements at 100 and 50 a ns; at 10 where the gradient lies otherwise than the input.
TEST(BatchNormSecondsTest, ChannelsThatAreLastAreElements) {
  const Graph backward = Backward("bfloat16[1000,1000]");
  EXPECT_EQ(ForwardTime("bfloat16[1000,1000]"), 1'000 + 10'000);
  EXPECT_EQ(TimeOf(backward), 2'000 + 20'000);
  EXPECT_EQ(TimeOf(WithStrides(backward, "g", {1'001, 1})), 2'000 + 100'000);
}

// Sequences have no layout with channels last, and images with holes are none: 20 and 10 a ns.
TEST(BatchNormSecondsTest, OtherLayoutsGoElementByElement) {
  const auto forward = [](const std::string& shape, const std::vector<std::int64_t>& strides) {
    return TimeOf(WithStrides(
        OneOp("input a " + shape, "y: " + shape + " = aten::_native_batch_norm_legit(a)"), "a",
        strides));
  };
  EXPECT_EQ(forward("bfloat16[100,100,100]", {10'000, 1, 100}), 1'000 + 50'000);
  EXPECT_EQ(forward("bfloat16[100,100,10,10]", {10'000, 1, 1'000, 100}), 1'000 + 10'000);
  EXPECT_EQ(forward("bfloat16[100,100,10,10]", {10'500, 1, 1'000, 100}), 1'000 + 50'000);
  EXPECT_EQ(TimeOf(WithStrides(Backward("bfloat16[100,100,100]"), "a", {10'000, 1, 100})),
            2'000 + 100'000);
}

// A million elements of the gradient, neighbours apart, at 20 a ns.
TEST(BatchNormSecondsTest, AGradientThatIsNotContiguousIsCopied) {
  const Graph graph = Backward("bfloat16[100,100,10,10]");
  EXPECT_EQ(TimeOf(WithStrides(graph, "g", {10'000, 1, 1'000, 100})) - TimeOf(graph), 50'000);
}

// 4 MB read and written.
TEST(BatchNormSecondsTest, InEvaluationNothingIsSummed) {
  const std::string shape = "bfloat16[1,10,100,1000]";
  EXPECT_EQ(TimeOf(OneOp("input a " + shape,
                         "y: " + shape + " = aten::_native_batch_norm_legit_no_training(a)")),
            4'000);
}

}  // namespace
}  // namespace dcsim
