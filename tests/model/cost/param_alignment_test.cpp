// What it costs that ZeRO-1 and 2 keep parameters side by side, on the GPU of gpu_with_kernels.h:
// large products at half of the peak, a fifth half aligned and a tenth unaligned, a twentieth where
// the second factor is transposed.

#include "model/cost/param_alignment.h"

#include <gtest/gtest.h>

#include "tests/model/cost/gpu_with_kernels.h"

namespace dcsim {
namespace {

/// A bias of `odd` elements in front of a weight that a product reads transposed.
Graph BiasAndWeight(const std::string& odd, const std::string& dtype = "bfloat16") {
  const Graph graph = OneOp("param b " + dtype + "[" + odd + "]\nparam w " + dtype +
                                "[128,1440]\ninput a " + dtype + "[12800,1440]",
                            "y: " + dtype + "[12800,128] = aten::mm(a, v)",
                            "v: " + dtype + "[1440,128] views w = aten::t(w)\n");
  return WithStrides(graph, "v", {1, 1440});
}

/// What 4.718592e9 FLOP, 4.718592 us at the peak, take beyond 10 us: in 200 tiles of 128 x 64, two
/// on each of 100 multiprocessors, as fast as 128 x 128 but for (1 + 2 * 40 / 128) / (1 + 40 / 128
/// + 40 / 64), over a depth of 1,440 and 160 more.
double Slower(double share) {
  return 3 + 4.718592 / (share * 1.625 / 1.9375 * 0.9) - 10;
}

/// What is added to 10 us, in us.
double Delay(const Graph& graph, int stage, ReduceCollective collective, int ranks = 3) {
  ScheduleOptions options;
  options.stage = stage;
  options.reduce_collective = collective;
  const ParamAlignment alignment(graph, options, ranks);
  return alignment.Delay(TraitsOf(graph, MakerOf(graph)), Duration::FromUs(10), GpuWithKernels())
      .us();
}

double InStage(int stage, const std::string& odd) {
  return Delay(BiasAndWeight(odd), stage, ReduceCollective::kAllReduce);
}

TEST(ParamAlignmentTest, WeightsBehindAnOddBiasAreSlow) {
  for (const int stage : {1, 2}) {
    EXPECT_DOUBLE_EQ(InStage(stage, "8"), 0);
    EXPECT_NEAR(InStage(stage, "4"), Slower(0.2), 1e-3);
    EXPECT_NEAR(InStage(stage, "2"), Slower(0.2), 1e-3);
    EXPECT_NEAR(InStage(stage, "1"), Slower(0.05), 1e-3);
  }
}

TEST(ParamAlignmentTest, GatheredParametersLieAlone) {
  EXPECT_DOUBLE_EQ(InStage(3, "1"), 0);
}

// 6 elements fill two shards of three; of four ranks 8.
TEST(ParamAlignmentTest, ShardsOfReduceScatterArePadded) {
  const Graph graph = BiasAndWeight("6");
  EXPECT_NEAR(Delay(graph, 1, ReduceCollective::kReduceScatter, 3), Slower(0.2), 1e-3);
  EXPECT_DOUBLE_EQ(Delay(graph, 1, ReduceCollective::kReduceScatter, 4), 0);
}

TEST(ParamAlignmentTest, Float32IsLeftAlone) {
  EXPECT_DOUBLE_EQ(Delay(BiasAndWeight("1", "float32"), 1, ReduceCollective::kAllReduce), 0);
}

// 1,000 rows at 0.1 a ns and 100,000 elements at one a ns, 110 us, instead of the 10 it takes; four
// elements of 2 bytes begin at multiples of 8.
TEST(ParamAlignmentTest, LayerNormsNeedFourElementsAligned) {
  const auto delay = [](const std::string& odd) {
    const Graph graph =
        OneOp("param b bfloat16[" + odd + "]\nparam w bfloat16[100]\ninput a bfloat16[1000,100]",
              "y: bfloat16[1000,100], m: float32[1000,1], d: float32[1000,1] = "
              "aten::native_layer_norm(a, w)");
    return Delay(graph, 1, ReduceCollective::kAllReduce);
  };
  EXPECT_DOUBLE_EQ(delay("2"), 100);
  EXPECT_DOUBLE_EQ(delay("4"), 0);
}

// A bias at an odd multiple of 2 bytes slows its product as a weight does.
TEST(ParamAlignmentTest, BiasesNeedAlignmentToo) {
  const Graph graph = OneOp(
      "param b bfloat16[1]\nparam c bfloat16[128]\ninput a bfloat16[12800,1440]\n"
      "input w bfloat16[1440,128]",
      "y: bfloat16[12800,128] = aten::addmm(c, a, w)");
  EXPECT_NEAR(Delay(graph, 1, ReduceCollective::kAllReduce), Slower(0.1), 1e-3);
}

// A million elements at 10 a ns instead of the 10 us it takes, also 8 bytes behind.
TEST(ParamAlignmentTest, EmbeddingsNeedWholeVectors) {
  const Graph graph = OneOp("param b bfloat16[4]\nparam w bfloat16[50,1000]\ninput t int64[1000]",
                            "y: bfloat16[1000,1000] = aten::embedding(w, t)");
  EXPECT_DOUBLE_EQ(Delay(graph, 1, ReduceCollective::kAllReduce), 90);
}

// Rows of 31 elements are slow wherever they begin.
TEST(ParamAlignmentTest, SlowProductsGetNoSlower) {
  const Graph graph = OneOp("param b bfloat16[1]\nparam w bfloat16[32,31]\ninput a bfloat16[16,32]",
                            "y: bfloat16[16,31] = aten::mm(a, w)");
  EXPECT_DOUBLE_EQ(Delay(graph, 1, ReduceCollective::kAllReduce), 0);
}

// Of 32,000 places 500 tiles of 64, of 1,000 channels made eight of 128: 40 blocks for each of 100
// multiprocessors, each 1 us and 10 ns for each of 1,024 channels that are read, less the 10 us
// that it took. Kernels of more elements take what they took.
TEST(ParamAlignmentTest, ConvolutionsOfOneElementNeedAlignedWeights) {
  const auto delay = [](const std::string& kernel) {
    const Graph graph = OneOp("param b bfloat16[4]\nparam w bfloat16[1000,1024," + kernel +
                                  "]\ninput a bfloat16[125,1024,16,16]",
                              "y: bfloat16[125,1000,16,16] = aten::convolution(a, w)");
    return Delay(graph, 1, ReduceCollective::kAllReduce);
  };
  EXPECT_NEAR(delay("1,1"), 40 * (1 + 10.24) - 10, 1e-2);
  EXPECT_EQ(delay("3,3"), 0);
}

/// A convolution with `made` channels of 1,024, on images of 16 x 16 or of one place.
double ForwardDelay(const std::string& made, const std::string& images, const std::string& places) {
  return Delay(
      OneOp("param b bfloat16[4]\nparam w bfloat16[" + made + ",1024,1,1]\ninput a bfloat16[" +
                images + ",1024," + places + "]",
            "y: bfloat16[" + images + "," + made + "," + places + "] = aten::convolution(a, w)"),
      1, ReduceCollective::kAllReduce);
}

// 16 channels made: 1,000 tiles of 32 x 32, ten for each multiprocessor, each 100 ns and 1 ns a
// channel. So few places that not every multiprocessor has one: a block alone, 20 ns a channel.
TEST(ParamAlignmentTest, FewChannelsAreMadeInSmallTilesAndFewPlacesByOneBlock) {
  EXPECT_NEAR(ForwardDelay("16", "125", "16,16"), 10 * (0.1 + 1.024) - 10, 1e-2);
  EXPECT_NEAR(ForwardDelay("16", "1", "1,1"), 20.48 - 10, 1e-2);
  EXPECT_NEAR(ForwardDelay("1000", "1", "1,1"), 20.48 - 10, 1e-2);
}

// A bias is added behind: 32 million elements at 100 a ns.
TEST(ParamAlignmentTest, ABiasIsAddedBehind) {
  const Graph graph = OneOp(
      "param b bfloat16[4]\nparam w bfloat16[1000,1024,1,1]\nparam c bfloat16[1000]\n"
      "input a bfloat16[125,1024,16,16]",
      "y: bfloat16[125,1000,16,16] = aten::convolution(a, w, c)");
  EXPECT_NEAR(Delay(graph, 1, ReduceCollective::kAllReduce), 40 * (1 + 10.24) + 320 - 10, 1e-2);
}

// The input's gradient needs it: of 1,024 channels 16 tiles of 64, of 256 places two of 128, for
// each of 125 images: 20 rounds of two blocks on each multiprocessor, 10 ns for each of 1,000
// channels, and 10 ps for each of 32,768,000 elements, less half of the 10 us. One place of one
// image: blocks alone, and 20 ps an element, as rows of one element begin anywhere.
TEST(ParamAlignmentTest, BackwardsNeedThemForTheInputsGradient) {
  const auto delay = [](const std::string& images, const std::string& places,
                        const std::string& made) {
    return Delay(
        OneOp("param b bfloat16[4]\nparam w bfloat16[1000,1024,1,1]\ninput g bfloat16[" + images +
                  ",1000," + places + "]\ninput a bfloat16[" + images + ",1024," + places + "]",
              made + " = aten::convolution_backward(g, a, w)"),
        1, ReduceCollective::kAllReduce);
  };
  const std::string weight = "bfloat16[1000,1024,1,1]";
  EXPECT_NEAR(delay("125", "16,16", "y: bfloat16[125,1024,16,16], v: " + weight),
              2 * 20 * 10 + 327.68 - 5, 1e-2);
  EXPECT_NEAR(delay("1", "1,1", "y: bfloat16[1,1024,1,1], v: " + weight), 20 + 0.02048 - 5, 1e-2);
  EXPECT_EQ(delay("125", "16,16", "_, y: " + weight), 0);
}

}  // namespace
}  // namespace dcsim
