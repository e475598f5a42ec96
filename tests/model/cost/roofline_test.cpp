// Products and attention that nobody has profiled, on the GPU of gpu_with_kernels.h.

#include <gtest/gtest.h>

#include "model/cost/kernel_models.h"
#include "model/cost/product_time.h"
#include "tests/model/cost/gpu_with_kernels.h"

namespace dcsim {
namespace {

Graph Product(const std::string& columns, const std::string& dtype = "bfloat16") {
  return OneOp("input a " + dtype + "[6400,2000]\ninput b " + dtype + "[2000," + columns + "]",
               "y: " + dtype + "[6400," + columns + "] = aten::mm(a, b)");
}

// 1,000 tiles of 64 x 64 are ten waves on 100 multiprocessors. 1.6384e10 FLOP at 5e14 a second take
// 32.768 us (reading 28.16 MB at 1 TB/s 28.16 us), writing 8.192 MB 8.192 us, starting 3.
TEST(ProductSecondsTest, ResultIsWrittenBehindTheFlops) {
  EXPECT_EQ(TimeOf(Product("640")), 43'960);
}

// Nobody takes the result: nothing to write, and no rows of it to align.
TEST(ProductSecondsTest, ResultThatNobodyTakesIsNotWritten) {
  Graph graph = Product("640");
  const OpId op = MakerOf(graph);
  graph.ops[op.index()].outputs = {ValueId::None()};
  EXPECT_EQ(KernelTime(TraitsOf(graph, op), GpuWithKernels()).ns(), 35'768);
}

// Rows of 641 elements of 2 bytes: 1.64096e10 FLOP at 1e14 a second and 8.2048 MB. 550 tiles of 128
// x 64 in three waves of 200 are 4,102,400 of 4,915,200 elements, as fast as 128 x 128 but for
// 1.625 / 1.9375, over 2,000 of 2,160: 0.648.
TEST(ProductSecondsTest, UnalignedProductIsSlow) {
  EXPECT_EQ(TimeOf(Product("641")), 264'376);
}

// Rows of 642 elements begin at multiples of 4 bytes: 1.64352e10 FLOP at 2e14 a second times 0.649,
// 8.2176 MB.
TEST(ProductSecondsTest, HalfAlignedProductIsFaster) {
  EXPECT_EQ(TimeOf(Product("642")), 137'803);
}

// 1.6384e10 FLOP at a fifth of 1e14 a second, 16.384 MB.
TEST(ProductSecondsTest, Float32HasItsOwnShare) {
  EXPECT_EQ(TimeOf(Product("640", "float32")), 838'584);
}

// 100 of 64 x 64 fill 100 multiprocessors once, 200 twice.
TEST(ProductUseTest, FullWavesUseTheWholeGpu) {
  EXPECT_DOUBLE_EQ(ProductUse({100, 64, 64, 1000}, 0, 100), 1);
  EXPECT_DOUBLE_EQ(ProductUse({1, 640, 1280, 1000}, 0, 100), 1);
}

// [704, 640]: 110 tiles of 64 x 64 are two waves (0.55 of them), 77 of 64 x 96 one:
// 704 * 640 / (100 * 64 * 96).
TEST(ProductUseTest, BestTileLeavesTheFewestIdle) {
  EXPECT_DOUBLE_EQ(ProductUse({1, 704, 640, 1000}, 0, 100), 450'560.0 / 614'400);
}

// (1 + 64 / 128 + 64 / 256) / (1 + 64 / 64 + 64 / 64)
TEST(ProductUseTest, SmallTilesLoadMore) {
  EXPECT_DOUBLE_EQ(ProductUse({1, 64, 64, 1000}, 64, 1), 1.75 / 3);
}

// One tile would use a hundredth; 16 parts of the depth, 2,048 each, 16 of them.
TEST(ProductUseTest, DeepProductsAreSplit) {
  EXPECT_DOUBLE_EQ(ProductUse({1, 64, 64, 32'767}, 0, 100), 0.88 * 0.08);
  EXPECT_DOUBLE_EQ(ProductUse({1, 64, 64, 32'768}, 0, 100), 0.88 * 0.16);
}

// [64, 64] in each of 100 groups fill the GPU: 1.6384e9 FLOP at 4e14 a second, reading 1.638 MB and
// writing 0.819 at 1 TB/s, starting 3 us.
TEST(ProductSecondsTest, GroupsReachAShareOfTheirOwn) {
  const Graph graph =
      OneOp("input a bfloat16[6400,2000]\ninput b bfloat16[100,2000,64]\ninput ends int32[100]",
            "y: bfloat16[6400,64] = aten::_grouped_mm(a, b, ends)");
  EXPECT_EQ(TimeOf(graph), 51'201 + 819 + 3'000);
}

// 50 products of [128, 128] read 52.838 MB, which takes longer than their FLOP; the addend of
// 819,200 elements is written in 8.192 us and read again in 1.638, as long as the result is
// written.
TEST(ProductSecondsTest, AddendOfABatchIsCopiedFirst) {
  const Graph graph = OneOp(
      "input c bfloat16[50,128,128]\ninput a bfloat16[50,128,2000]\ninput b bfloat16[50,2000,128]",
      "y: bfloat16[50,128,128] = aten::baddbmm(c, a, b)");
  EXPECT_EQ(TimeOf(graph), 52'838 + 8'192 + 2 * 1'639 + 3'000);
}

// Rows of 50 elements begin at multiples of 4 bytes: 64 x 64 tiles, 100 of 200 places and 50 of 64
// columns, as fast as 128 x 128 but for (1 + 2 * 40 / 128) / (1 + 2 * 40 / 64). Rows of 51 go at
// half of that. Over a depth of 2,000 and 160 more.
TEST(SlowProductTest, SmallProductsLeaveTilesIdle) {
  const auto share = [](const std::string& columns, bool half) {
    const Graph graph = Product(columns);
    return SlowProductShare(TraitsOf(graph, MakerOf(graph)), half, GpuWithKernels());
  };
  const double use = 0.5 * 50 / 64 * 1.625 / 2.25 * 2000 / 2160;
  EXPECT_DOUBLE_EQ(share("50", true), 0.2 * use);
  EXPECT_DOUBLE_EQ(share("50", false), 0.1 * use);
}

TEST(SlowProductTest, TransposedFactorsAreSlowerWhereNothingIsAligned) {
  const Graph graph = WithStrides(Product("50"), "b", {1, 2000});
  const auto share = [&](bool half) {
    return SlowProductShare(TraitsOf(graph, MakerOf(graph)), half, GpuWithKernels());
  };
  EXPECT_DOUBLE_EQ(share(true) / share(false), 4);
}

// 8 parts of 4,096 on 8 of 200 places, or 16 of 2,048 on 16, in 64 x 64 tiles, joined at 0.88.
TEST(SlowProductTest, DeepProductsAreSplit) {
  const Graph graph = OneOp("input a bfloat16[64,32768]\ninput b bfloat16[32768,64]",
                            "y: bfloat16[64,64] = aten::mm(a, b)");
  EXPECT_DOUBLE_EQ(SlowProductShare(TraitsOf(graph, MakerOf(graph)), true, GpuWithKernels()),
                   0.2 * 0.88 * 16 / 200 * 1.625 / 2.25 * 2048 / 2208);
}

// 6,400 rows of 2,000 x 2,000 times a column take what they read, 51.2 GB at 1 TB/s; a million of 8
// x 8 at one a ns longer than their 144 MB. Two vectors each: 64 million elements at 20 a ns.
TEST(ProductSecondsTest, BatchesOfVectorsAreNoTiles) {
  const auto time = [](const std::string& left, const std::string& right, const std::string& made) {
    return TimeOf(OneOp("input a bfloat16[" + left + "]\ninput b bfloat16[" + right + "]",
                        "y: bfloat16[" + made + "] = aten::bmm(a, b)"));
  };
  EXPECT_EQ(time("6400,2000,2000", "6400,2000,1", "6400,2000,1"), 51'200'000 + 2 * 25'600 + 3'000);
  EXPECT_EQ(time("1000000,8,8", "1000000,8,1", "1000000,8,1"), 1'000'000 + 3'000);
  EXPECT_EQ(time("1000000,8,1", "1000000,1,8", "1000000,8,8"), 3'200'000 + 3'000);
}

/// Of 32 heads.
std::int64_t EfficientTime(const std::string& batch,
                           const std::string& queries,
                           const std::string& head) {
  const std::string heads = "bfloat16[" + batch + ",32," + queries + "," + head + "]";
  return TimeOf(OneOp("input q " + heads,
                      "y: " + heads + " = aten::_scaled_dot_product_efficient_attention(q, q, q)"));
}

// 1.7180e10 FLOP at a tenth of 1e15 a second; with heads of 256 twice as many at a fifth. 512
// blocks of 1 us on 100 multiprocessors.
TEST(AttentionSecondsTest, EfficientAttentionReachesAShare) {
  EXPECT_EQ(EfficientTime("1", "1024", "128"), 171'799 + 5'120);
  EXPECT_EQ(EfficientTime("1", "1024", "256"), 171'799 + 5'120);
}

// 1,024 * 4 * 64 * 64 * 128 FLOP, as for 64 queries and keys, and as many blocks of 1 us.
TEST(AttentionSecondsTest, EfficientAttentionRoundsUpToBlocks) {
  EXPECT_EQ(EfficientTime("32", "49", "128"), 21'475 + 10'240);
  EXPECT_EQ(EfficientTime("32", "64", "128"), 21'475 + 10'240);
}

/// Attention of 8 heads of 100, as long as of 128, over 1000 queries and keys: 8 blocks of 128 of
/// each a head.
Graph Attention(bool causal) {
  const std::string heads = "bfloat16[1,8,1000,100]";
  Graph graph = OneOp("input q " + heads,
                      "y: " + heads + " = aten::_scaled_dot_product_flash_attention(q, q, q)");
  Op& op = graph.ops[MakerOf(graph).index()];
  graph.schemas[op.schema] =
      "aten::_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, bool "
      "is_causal=False) -> Tensor";
  op.arguments.emplace_back(causal);
  return graph;
}

// A multiprocessor of the 100 does 2.5e12 FLOP a second, a pair of blocks in 3.35544 us. 64 blocks
// of 1 us and 512 pairs are 17.82 us on all, half of the longest block, 1 us and 8 pairs, 13.92.
TEST(AttentionSecondsTest, AttentionIsBlocksOnMultiprocessorsAndTheirTail) {
  const Graph graph = Attention(false);
  EXPECT_EQ(TimeOf(graph), 31'742);
}

// 64 blocks of 3 us and 8 * 36 pairs, and half of a block of 3 us and 8 pairs: 11.58 + 14.92.
TEST(AttentionSecondsTest, CausalAttentionHasFewerPairs) {
  const Graph graph = Attention(true);
  EXPECT_EQ(TimeOf(graph), 26'506);
}

Graph AttentionBackward(const std::string& key_heads) {
  const std::string queries = "bfloat16[1,8,1000,100]";
  return OneOp(
      "input g " + queries + "\ninput k bfloat16[1," + key_heads + ",1000,100]",
      "y: " + queries + " = aten::_scaled_dot_product_flash_attention_backward(g, g, k, k)");
}

// 64 blocks of 2 us and 512 pairs of 16.7772 at 1.25e12 FLOP a second: 87.18 us on 100
// multiprocessors. 819,200 elements of whole blocks: 8 bytes each at 1 TB/s, 6 at 0.4: 18.84 us.
TEST(AttentionSecondsTest, AttentionBackwardSumsAndConverts) {
  const Graph graph = AttentionBackward("8");
  EXPECT_EQ(TimeOf(graph), 106'021);
}

// Besides, 2 * 8 heads of gradients are read and 2 * 2 written: 4 MB at 0.4 TB/s.
TEST(AttentionSecondsTest, AttentionBackwardAddsUpTheQueryHeadsOfAKeyHead) {
  const Graph graph = AttentionBackward("2");
  EXPECT_EQ(TimeOf(graph), 116'021);
}

/// Of cuDNN: queries, keys and values [1, heads, length, width], and whether a mask is added.
struct Cudnn {
  std::string heads = "1";
  std::string length = "1024";
  std::string width = "64";
  std::string value_width = "64";
  bool causal = false;
  bool masked = false;
};

Graph CudnnAttention(const Cudnn& of) {
  const std::string front = "bfloat16[1," + of.heads + "," + of.length + ",";
  Graph graph = OneOp("input q " + front + of.width + "]\ninput v " + front + of.value_width + "]",
                      "y: " + front + of.value_width +
                          "] = aten::_scaled_dot_product_cudnn_attention(q, q, v" +
                          (of.masked ? ", q)" : ")"));
  Op& op = graph.ops[MakerOf(graph).index()];
  graph.schemas[op.schema] =
      "aten::_scaled_dot_product_cudnn_attention(Tensor query, Tensor key, Tensor value, Tensor? "
      "attn_bias, bool is_causal=False) -> Tensor";
  if (!of.masked) {
    op.arguments.emplace_back(std::monostate());
  }
  op.arguments.emplace_back(of.causal);
  return graph;
}

// On 100 multiprocessors, 8 blocks of 3 + 1 us and 8 pairs of 1 + 2 us each run at once, a call
// starts in 5 us. With 13 heads four of the 104 blocks have to wait for others.
TEST(AttentionSecondsTest, CudnnBlocksRunInWaves) {
  EXPECT_EQ(TimeOf(CudnnAttention({})), 33'000);
  EXPECT_EQ(TimeOf(CudnnAttention({.heads = "12"})), 33'000);
  EXPECT_EQ(TimeOf(CudnnAttention({.heads = "13"})), 61'000);
}

// The longest block has all 8 pairs. Of 13 heads, the last four blocks, of 5 to 8 pairs, start when
// blocks of one pair have ended, after 7 us.
TEST(AttentionSecondsTest, CudnnBlocksOfCausalAttentionStartWhereOthersHaveEnded) {
  EXPECT_EQ(TimeOf(CudnnAttention({.causal = true})), 33'000);
  EXPECT_EQ(TimeOf(CudnnAttention({.heads = "13", .causal = true})), 7'000 + 33'000);
}

// 9 pairs a block, each a tenth longer; with a mask twice as long.
TEST(AttentionSecondsTest, CudnnPairsTakeLongerWhereKeysFillNoBlockOrAMaskIsAdded) {
  EXPECT_EQ(TimeOf(CudnnAttention({.length = "1100"})), 9'000 + 29'700);
  EXPECT_EQ(TimeOf(CudnnAttention({.masked = true})), 9'000 + 48'000);
}

// Heads count by 64: 72 as 128, 5 us a pair and 5 a block. 192 beside 128 are 2.5 steps: 1.5 times
// 6 us, with a mask three times that.
TEST(AttentionSecondsTest, CudnnHeadsCountInSteps) {
  EXPECT_EQ(TimeOf(CudnnAttention({.width = "72", .value_width = "72"})), 10'000 + 40'000);
  EXPECT_EQ(TimeOf(CudnnAttention({.width = "192", .value_width = "128"})), 10'500 + 72'000);
  EXPECT_EQ(TimeOf(CudnnAttention({.width = "192", .value_width = "128", .masked = true})),
            10'500 + 216'000);
}

// 10,000 heads of 8 blocks: all but the last 1,024 heads share the multiprocessors evenly, 80
// blocks of 28 us for each thousand; the 8,192 blocks of the last ones take 82 rounds.
TEST(AttentionSecondsTest, CudnnBlocksOfManyHeadsAreShared) {
  EXPECT_EQ(TimeOf(CudnnAttention({.heads = "10000"})), 5'000 + 8'976 * 8 * 280 + 82 * 28'000);
}

// 8 blocks of keys with 6 us, and 8 pairs of 2 + 4 us: 54 us behind 1 us. 65,536 elements of 8
// bytes at 1 TB/s and 6 at 0.4.
TEST(AttentionSecondsTest, CudnnBackwardSumsAndConverts) {
  const Graph graph = OneOp(
      "input g bfloat16[1,1,1024,64]",
      "y: bfloat16[1,1,1024,64] = aten::_scaled_dot_product_cudnn_attention_backward(g, g, g, g)");
  EXPECT_EQ(TimeOf(graph), 55'000 + 524 + 492);
}

}  // namespace
}  // namespace dcsim
