// Convolutions that nobody has profiled, on the GPU of gpu_with_kernels.h: 1e15 FLOP/s, 100
// multiprocessors, 1 TB/s.

#include "model/cost/convolution_time.h"

#include <gtest/gtest.h>

#include "tests/model/cost/gpu_with_kernels.h"

namespace dcsim {
namespace {

constexpr std::int64_t kStart = 3'000;
constexpr std::int64_t kPass = 5'000;

Graph Convolution(const std::string& weight, const std::string& bias = "") {
  return OneOp(
      "input a bfloat16[64,1024,7,7]\ninput w bfloat16[" + weight + "]\ninput b bfloat16[1024]",
      "y: bfloat16[64,1024,7,7] = aten::convolution(a, w" + bias + ")");
}

std::vector<std::int64_t> ChannelsLast() {
  return {50'176, 1, 7'168, 1'024};
}

// 5.9190e10 FLOP at 4e14 a second, 0.98 of the tiles' room (3,136 places of 25 times 128), take
// 150.995 us. Channels first: 3.21 million elements in and out at 200 a ns, 9.44 million weights at
// 100.
TEST(ConvolutionSecondsTest, BringsChannelsLast) {
  const Graph graph = Convolution("1024,1024,3,3");
  EXPECT_EQ(TimeOf(graph), kStart + 150'995 + 32'113 + 94'372);
  EXPECT_EQ(TimeOf(WithStrides(graph, "a", ChannelsLast())), kStart + 150'995);
}

// 1.9730e10 FLOP take 50.332 us; 3.21 million elements in and out and 3.15 million weights change
// their layout. Channels last is no layout of a one-dimensional convolution: its input is copied
// first, and changes like any other.
TEST(ConvolutionSecondsTest, OneDimensionalOnesCopyWhatHasChannelsLast) {
  const Graph graph = OneOp("input a bfloat16[64,1024,49]\ninput w bfloat16[1024,1024,3]",
                            "y: bfloat16[64,1024,49] = aten::convolution(a, w)");
  const std::int64_t contiguous = kStart + 50'332 + 32'113 + 31'457;
  EXPECT_EQ(TimeOf(graph), contiguous);
  EXPECT_EQ(TimeOf(WithStrides(graph, "a", {50'176, 1, 1'024})), contiguous + 160'563);
}

// 6.5767e9 FLOP, 16.7775 us. Of few places in an image channels are brought last, which is faster
// than products of an image each.
TEST(ConvolutionSecondsTest, KernelsOfOneElementOverFewPlacesChangeTheLayout) {
  const Graph planar = Convolution("1024,1024,1,1");
  EXPECT_EQ(TimeOf(planar), kStart + 16'777 + 32'113);
  EXPECT_EQ(TimeOf(WithStrides(planar, "a", ChannelsLast())), kStart + 16'778);
}

// Of more places they are products of an image each. 256 places are 512 bytes: 8.590e9 FLOP at
// 2.5e14 a second. 196 are 392, no multiple of 16: 6.5767e9 at 2e14, of which 128 x 64 tiles (half
// of 1.9375 as fast as large ones) have room for 0.6533 and a depth of 1,024 leaves 1,024 / 1,184.
TEST(ConvolutionSecondsTest, KernelsOfOneElementAreProductsOfAnImageEach) {
  const auto time = [](const std::string& image) {
    return TimeOf(OneOp("input a bfloat16[16,1024," + image + "]\ninput w bfloat16[1024,1024,1,1]",
                        "y: bfloat16[16,1024," + image + "] = aten::convolution(a, w)"));
  };
  EXPECT_EQ(time("16,16"), kStart + 34'360);
  const double share = 0.2 * (3'211'264.0 / (600 * 128 * 64)) * (1.625 / 1.9375) * 1024 / 1184;
  EXPECT_NEAR(static_cast<double>(time("14,14")), kStart + 6'576.669 / share, 1);
}

/// 16 images of 1,024 channels of 16 x 16, a kernel of one element; 8.590e9 FLOP a pass.
std::int64_t BackwardTime(const std::string& made) {
  return TimeOf(
      OneOp("input g bfloat16[16,1024,16,16]\ninput a bfloat16[16,1024,16,16]\ninput w "
            "bfloat16[1024,1024,1,1]",
            made + " = aten::convolution_backward(g, a, w)"));
}

// The input's gradient is a product of an image each (34.360 us). The weight's as one (its parts,
// 67 MB written and read, would take longer): 8.590e9 FLOP at 2e14, 0.8533 of the tiles' room, and
// 4.19 million elements of input and gradient and 1.05 million of the weight between layouts.
TEST(ConvolutionSecondsTest, ABackwardIsAPassForEachGradient) {
  const std::int64_t input = kPass + 34'360;
  const std::int64_t weight = kPass + 50'332 + 41'943 + 10'486;
  const std::string made = "y: bfloat16[16,1024,16,16]";
  EXPECT_NEAR(static_cast<double>(BackwardTime(made + ", _")), kStart + input, 2);
  EXPECT_NEAR(static_cast<double>(BackwardTime("_, y: bfloat16[1024,1024,1,1]")), kStart + weight,
              2);
  EXPECT_NEAR(static_cast<double>(BackwardTime(made + ", w1: bfloat16[1024,1024,1,1]")),
              kStart + input + weight, 2);
}

// 4.53e8 FLOP at 0.5e14 a second are less than 17.18 MB at 1 TB/s. The backward has no such way:
// 196,608 elements of the images at 50 a ns, 8.39 million of the gradient at 200 and 3,456 of the
// weight at 100 change their layout.
TEST(ConvolutionSecondsTest, ImagesOfFewChannelsMayStayAsTheyAre) {
  const std::string tensors = "input a bfloat16[64,3,32,32]\ninput w bfloat16[128,3,3,3]";
  EXPECT_EQ(TimeOf(OneOp(tensors, "y: bfloat16[64,128,32,32] = aten::convolution(a, w)")),
            kStart + 17'178);
  EXPECT_NEAR(static_cast<double>(TimeOf(OneOp(tensors + "\ninput g bfloat16[64,128,32,32]",
                                               "_, y: bfloat16[128,3,3,3] = "
                                               "aten::convolution_backward(g, a, w)"))),
              kStart + kPass + 17'177 + 3'932 + 41'943 + 35, 2);
}

// Sequences of one channel change their layout: 1.0737e9 FLOP, of which one of eight channels
// counts (0.125 of 1e14 a second); 1.05 million elements in at 50 a ns and 67.1 million out at 200.
TEST(ConvolutionSecondsTest, SequencesOfFewChannelsAreFilledUp) {
  EXPECT_NEAR(
      static_cast<double>(TimeOf(OneOp("input a bfloat16[16,1,65536]\ninput w bfloat16[128,1,64]",
                                       "y: bfloat16[16,128,32768] = aten::convolution(a, w)"))),
      kStart + 687'195 + 20'972 + 335'544 + 82, 2);
}

// Four groups of 64 channels, 2 us each: 3.355e9 FLOP at 4e14 a second, in 256 of
// 300 tiles of 64 x 64.
TEST(ConvolutionSecondsTest, GroupsAreProductsOfTheirOwn) {
  const Graph graph = OneOp("input a bfloat16[1,256,64,64]\ninput w bfloat16[256,64,5,5]",
                            "y: bfloat16[1,256,64,64] = aten::convolution(a, w)");
  EXPECT_EQ(TimeOf(WithStrides(graph, "a", {1'048'576, 1, 16'384, 256})), kStart + 8'000 + 9'831);
}

// 1.718e10 FLOP: 4,096 places x 2,048 elements of the windows that they are spread over, depth
// 1,024; 2,048 of 2,100 tiles.
TEST(ConvolutionSecondsTest, TransposedOnesSpreadTheirInput) {
  Graph graph = OneOp("input a bfloat16[4,1024,32,32]\ninput w bfloat16[1024,512,2,2]",
                      "y: bfloat16[4,512,64,64] = aten::convolution(a, w)");
  graph.schemas[graph.op(MakerOf(graph)).schema] =
      "aten::convolution(Tensor input, Tensor weight, bool transposed) -> Tensor";
  graph.ops[MakerOf(graph).index()].arguments.emplace_back(true);
  EXPECT_NEAR(static_cast<double>(TimeOf(graph)),
              kStart + 17'179.869 * 2100 / 2048 / 0.4 + 20'972 + 41'943 + 20'972, 2);
}

TEST(ConvolutionSecondsTest, NothingTakesNoTime) {
  EXPECT_EQ(TimeOf(OneOp("input a bfloat16[0,16,8,8]\ninput w bfloat16[16,16,3,3]",
                         "y: bfloat16[0,16,8,8] = aten::convolution(a, w)")),
            kStart);
}

// 3.21 million elements more at 100 a ns.
TEST(ConvolutionSecondsTest, BiasIsAddedBehind) {
  EXPECT_EQ(TimeOf(WithStrides(Convolution("1024,1024,1,1", ", b"), "a", ChannelsLast())),
            kStart + 16'777 + 32'113);
}

// 3.21 million multiply-adds at 1,000 a ns; reading and writing 12.8 MB at 1 TB/s takes longer.
// Where channels are not last each of 3.21 million elements takes 4 ps, 2 for a row of its window
// and 1 for each element; unrolled, 3 x 3 takes 3 and 2 for each. What is not contiguous either is
// copied, with neighbours apart.
TEST(ConvolutionSecondsTest, EachChannelAloneIsBoundByItsBytesOrByItsThreads) {
  const Graph planar = Convolution("1024,1,1,1");
  EXPECT_EQ(TimeOf(WithStrides(planar, "a", ChannelsLast())), kStart + 12'848);
  EXPECT_EQ(TimeOf(planar), kStart + 22'479);
  EXPECT_EQ(TimeOf(WithStrides(planar, "a", {50'176, 49, 1, 7})), kStart + 22'479 + 32'113);
  EXPECT_EQ(TimeOf(Convolution("1024,1,3,3")), kStart + 67'437);
  EXPECT_EQ(TimeOf(OneOp("input a bfloat16[64,1024,49]\ninput w bfloat16[1024,1,9]",
                         "y: bfloat16[64,1024,49] = aten::convolution(a, w)")),
            kStart + 48'169);
}

// With channels last 28.9 million multiply-adds for each gradient, at 500 and 2,000 a ns, and 5 us
// for the weight's. What lies apart is brought together first, 100 elements a ns.
TEST(ConvolutionSecondsTest, GradientsOfChannelsThatAreLastAreMultiplyAdds) {
  const std::string image = "bfloat16[64,1024,7,7]";
  Graph graph = OneOp("input g " + image + "\ninput a " + image + "\ninput w bfloat16[1024,1,3,3]",
                      "y: " + image +
                          ", v: bfloat16[1024,1,3,3] = "
                          "aten::convolution_backward(g, a, w)");
  graph = WithStrides(WithStrides(graph, "a", ChannelsLast()), "g", ChannelsLast());
  const double both = 28'901.376 / 0.5 + 28'901.376 / 2 + kPass;
  EXPECT_NEAR(static_cast<double>(TimeOf(graph)), kStart + both, 1);
  graph = WithStrides(graph, "g", {60'000, 1, 7'168, 1'024});
  EXPECT_NEAR(static_cast<double>(TimeOf(graph)), kStart + both + 32'113, 1);
}

// The input's gradient: 3.21 million elements of 6 ps and one for each of nine. The weight's: 9,216
// thread blocks, 92.16 a multiprocessor and 1.7 more; each of eight warps takes eight images in
// turn, 100 ns and two times 200 for 49 elements. One image leaves seven of eight warps out.
TEST(ConvolutionSecondsTest, GradientsOfChannelsAloneAreThreadsAndThreadBlocks) {
  const auto time = [](const std::string& images, const std::string& made) {
    const std::string image = "bfloat16[" + images + ",1024,7,7]";
    return static_cast<double>(
        TimeOf(OneOp("input g " + image + "\ninput a " + image + "\ninput w bfloat16[1024,1,3,3]",
                     made + " = aten::convolution_backward(g, a, w)")));
  };
  const double weight = 8 * 500 * 93.86;
  EXPECT_NEAR(time("64", "_, y: bfloat16[1024,1,3,3]"), kStart + weight, 1);
  EXPECT_NEAR(time("64", "y: bfloat16[64,1024,7,7], v: bfloat16[1024,1,3,3]"),
              kStart + weight + 48'169, 1);
  EXPECT_NEAR(time("1", "_, y: bfloat16[1024,1,3,3]"), kStart + weight / 64, 1);
}

}  // namespace
}  // namespace dcsim
