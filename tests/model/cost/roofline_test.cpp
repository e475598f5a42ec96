// Ops that nobody has profiled: how they go through memory, and what products and attention take,
// with the GPU of TestCluster (cluster_document.h): products at half of 1e15 FLOP/s in bfloat16,
// 2 TB/s, no kernel below 2 us.

#include "model/cost/roofline.h"

#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "tests/model/cost/cluster_document.h"
#include "tests/support/row_name.h"

namespace dcsim {
namespace {

/// Half of the bandwidth for dense tensors, a fifth for anything else, and 100 elements a ns where
/// kernels go element by element; products start in 3 us, at a tenth of the peak unaligned and a
/// fifth half aligned.
GpuSpec GpuWithKernels() {
  GpuSpec gpu = TestCluster().gpu;
  KernelRates kernels;
  kernels.access.fill(0.2);
  kernels.access[static_cast<std::size_t>(MemoryAccess::kPlain)] = 0.5;
  kernels.elements_per_second = 1e11;
  kernels.product_start = Duration::FromUs(3);
  kernels.unaligned_product = 0.1;
  kernels.half_aligned_product = 0.2;
  kernels.attention = {Duration::FromUs(1), Duration::FromUs(2), 0.5};
  kernels.attention_backward = {Duration::FromUs(2), Duration::FromUs(3), 0};
  gpu.kernels = kernels;
  return gpu;
}

/// The op that makes y, behind what `before` makes.
Graph OneOp(const std::string& tensors, const std::string& op, const std::string& before = "") {
  return ParseGraphText("graph g 1 tokens\n" + tensors + "\nforward\n" + before + op +
                        "\nl: float32[] = my::loss(y)\nloss l\n");
}

OpId MakerOf(const Graph& graph) {
  std::size_t op = 0;
  while (graph.value(graph.ops[op].outputs.front()).name != "y") {
    ++op;
  }
  return OpId(op);
}

struct AccessRow {
  std::string name;
  std::string tensors;
  std::string op;
  MemoryAccess expected;
};

std::vector<AccessRow> Rows() {
  const std::string pair = "input a float32[8,6]\ninput b float32[8,6]";
  return {
      {"DenseTensorsOfOneKind", pair, "y: float32[8,6] = aten::add(a, b)", MemoryAccess::kPlain},
      {"AScalarBeside", pair + "\ninput s float64[1]", "y: float32[8,6] = aten::mul(a, s)",
       MemoryAccess::kPlain},
      {"ACast", pair, "y: bfloat16[8,6] = aten::_to_copy(a)", MemoryAccess::kConverting},
      {"TwoDTypes", "input a float32[8,6]\ninput b bfloat16[8,6]",
       "y: float32[8,6] = aten::mul(a, b)", MemoryAccess::kConverting},
      {"ARowForAll", pair + "\ninput w float32[6]", "y: float32[8,6] = aten::mul(a, w)",
       MemoryAccess::kByElement},
      {"AlongRows", pair, "y: float32[8,1] = aten::sum(a)", MemoryAccess::kRowReduction},
      {"AlongColumns", "input a float32[8,513]", "y: float32[1,513] = aten::sum(a)",
       MemoryAccess::kColumnReduction},
      {"ToAFewColumns", "input a float32[8,512]", "y: float32[1,512] = aten::sum(a)",
       MemoryAccess::kNarrowReduction},
      {"ToOneElement", pair, "y: float32[] = aten::mean(a)", MemoryAccess::kRowReduction},
      {"Softmax", pair, "y: float32[8,6] = aten::_log_softmax(a)", MemoryAccess::kNormalization},
      {"SoftmaxBackward", pair, "y: float32[8,6] = aten::_log_softmax_backward_data(a, b)",
       MemoryAccess::kSoftmaxBackward},
      {"ALossBackward", pair + "\ninput t int64[8]",
       "y: float32[8,6] = aten::nll_loss_backward(a, b, t)", MemoryAccess::kPlain},
      {"AnEmbeddingBackward", "input a float32[8,6]\ninput t int64[8]",
       "y: float32[20,6] = aten::embedding_dense_backward(a, t)", MemoryAccess::kConverting},
      {"LayerNormBackward", pair, "y: float32[8,6] = aten::native_layer_norm_backward(a, b)",
       MemoryAccess::kLayerNormBackward},
      {"LayerNorm", pair, "y: float32[8,6] = aten::native_layer_norm(a)",
       MemoryAccess::kNormalization},
      {"OfShortRows", "input a float32[8,64]\ninput b float32[8,127]",
       "y: float32[8,191] = aten::cat(a, b)", MemoryAccess::kConcatenation},
      {"OfLongRows", "input a float32[8,128]\ninput b float32[8,129]",
       "y: float32[8,257] = aten::cat(a, b)", MemoryAccess::kPlain},
      {"OfWholeTensors", "input a float32[8,16]\ninput b float32[9,16]",
       "y: float32[17,16] = aten::cat(a, b)", MemoryAccess::kPlain},
  };
}

class AccessTest : public testing::TestWithParam<AccessRow> {};

TEST_P(AccessTest, IsThatOfItsTensors) {
  const Graph graph = OneOp(GetParam().tensors, GetParam().op);
  EXPECT_EQ(AccessOf(graph, MakerOf(graph)), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(Ops, AccessTest, testing::ValuesIn(Rows()), RowName());

/// The graph with another layout of the value of that name.
Graph WithStrides(Graph graph, const std::string& name, const std::vector<std::int64_t>& strides) {
  for (Value& value : graph.values) {
    value.strides = value.name == name ? strides : value.strides;
  }
  return graph;
}

// A slice of wider rows has holes; a transposed tensor none, but another layout than the rest; with
// all tensors transposed alike the kernel walks through them as they lie.
TEST(AccessTest, LayoutsDecide) {
  const Graph graph = OneOp("input a float32[8,6]", "y: float32[8,6] = aten::neg(a)");
  const OpId op = MakerOf(graph);
  EXPECT_EQ(AccessOf(WithStrides(graph, "a", {12, 1}), op), MemoryAccess::kByElement);
  const Graph transposed = WithStrides(graph, "a", {1, 8});
  EXPECT_EQ(AccessOf(transposed, op), MemoryAccess::kByElement);
  EXPECT_EQ(AccessOf(WithStrides(transposed, "y", {1, 8}), op), MemoryAccess::kPlain);
}

// 12 MB at a fifth of 2 TB/s: 30 us; at half of it 12 us.
TEST(KernelRatesTest, BytesTakeTheTimeOfTheirAccess) {
  const auto time = [](const std::string& op) {
    const Graph graph = OneOp("input a float32[1000000]\ninput b float32[1000000]", op);
    return RooflineTime(graph, MakerOf(graph), GpuWithKernels()).ns();
  };
  EXPECT_EQ(time("y: float32[1000000] = aten::add(a, b)"), 12'000);
  EXPECT_EQ(time("y: float32[2000000] = aten::_log_softmax(a)"), 30'000);
}

// A million elements take 10 us in either dtype (12 and 6 MB at half of 2 TB/s would take 8 and
// 4); 12 us where the bytes need them.
TEST(KernelRatesTest, BroadcastsAreBoundByElements) {
  const auto time = [](const std::string& dtype, const std::string& row, const std::string& more) {
    const Graph graph = OneOp("input a " + dtype + "[1000,1000]\ninput w " + dtype + row,
                              "y: " + dtype + "[1000,1000] = aten::mul(a, w" + more + ")");
    return RooflineTime(graph, MakerOf(graph), GpuWithKernels()).ns();
  };
  EXPECT_EQ(time("float32", "[1000]", ""), 10'000);
  EXPECT_EQ(time("bfloat16", "[1000]", ""), 10'000);
  EXPECT_EQ(time("float32", "[1000]", ", a"), 12'004);
}

Graph Product(const std::string& rows, const std::string& columns) {
  return OneOp("input a bfloat16[" + rows + ",2000]\ninput b bfloat16[2000," + columns + "]",
               "y: bfloat16[" + rows + "," + columns + "] = aten::mm(a, b)");
}

// 2e10 FLOP at 5e14 a second take 40 us (reading 24 MB at 1 TB/s 24 us), writing 10 MB 10 us.
TEST(KernelRatesTest, AProductIsWrittenBehindItsFlops) {
  const Graph graph = Product("1000", "5000");
  EXPECT_EQ(RooflineTime(graph, MakerOf(graph), GpuWithKernels()).ns(), 53'000);
}

// Nobody takes the result: nothing to write, and no rows of it to align.
TEST(KernelRatesTest, AProductThatNobodyTakesWritesNothing) {
  Graph graph = Product("1000", "5000");
  const OpId op = MakerOf(graph);
  graph.ops[op.index()].outputs = {ValueId::None()};
  EXPECT_EQ(RooflineTime(graph, op, GpuWithKernels()).ns(), 43'000);
}

// Rows of 5001 elements of 2 bytes: 2.0004e10 FLOP at 1e14 a second and 10.002 MB.
TEST(KernelRatesTest, AnUnalignedProductIsSlow) {
  const Graph graph = Product("1000", "5001");
  EXPECT_EQ(RooflineTime(graph, MakerOf(graph), GpuWithKernels()).ns(), 200'040 + 10'002 + 3'000);
}

// Rows of 5002 elements begin at multiples of 4 bytes: 2.0008e10 FLOP at 2e14 a second.
TEST(KernelRatesTest, AHalfAlignedProductIsFaster) {
  const Graph graph = Product("1000", "5002");
  EXPECT_EQ(RooflineTime(graph, MakerOf(graph), GpuWithKernels()).ns(), 100'040 + 10'004 + 3'000);
}

// Rows of 14 bytes; 6.58e9 FLOP at 5e14 a second, 6.42 MB at 1e12.
TEST(KernelRatesTest, ConvolutionsNeedNoAlignedRows) {
  const Graph graph = OneOp("input a bfloat16[64,1024,7,7]\ninput w bfloat16[1024,1024,1,1]",
                            "y: bfloat16[64,1024,7,7] = aten::convolution(a, w)");
  EXPECT_EQ(RooflineTime(graph, MakerOf(graph), GpuWithKernels()).ns(), 22'576);
}

/// Attention of 8 heads of 100 over 1000 queries and keys: 8 blocks of 128 of each a head.
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

// A multiprocessor of the 100 does 2.5e12 FLOP a second, a pair of blocks in 2.62144 us. 64 blocks
// of 1 us and 512 pairs are 14.06 us on all, half of the longest block, 1 us and 8 pairs, 10.99.
TEST(KernelRatesTest, AttentionIsBlocksOnMultiprocessorsAndTheirTail) {
  const Graph graph = Attention(false);
  EXPECT_EQ(RooflineTime(graph, MakerOf(graph), GpuWithKernels()).ns(), 25'048);
}

// 64 blocks of 3 us and 8 * 36 pairs, and half of a block of 3 us and 8 pairs: 9.47 + 11.99.
TEST(KernelRatesTest, CausalAttentionHasFewerPairs) {
  const Graph graph = Attention(true);
  EXPECT_EQ(RooflineTime(graph, MakerOf(graph), GpuWithKernels()).ns(), 21'456);
}

Graph AttentionBackward(const std::string& key_heads) {
  const std::string queries = "bfloat16[1,8,1000,100]";
  return OneOp(
      "input g " + queries + "\ninput k bfloat16[1," + key_heads + ",1000,100]",
      "y: " + queries + " = aten::_scaled_dot_product_flash_attention_backward(g, g, k, k)");
}

// 64 blocks of 2 us and 512 pairs of 13.1072 at 1.25e12 FLOP a second: 68.39 us on 100
// multiprocessors. 819,200 elements of whole blocks: 8 bytes each at 1 TB/s, 6 at 0.4: 18.84 us.
TEST(KernelRatesTest, AttentionBackwardSumsAndConverts) {
  const Graph graph = AttentionBackward("8");
  EXPECT_EQ(RooflineTime(graph, MakerOf(graph), GpuWithKernels()).ns(), 87'231);
}

// Besides, 2 * 8 heads of gradients are read and 2 * 2 written: 4 MB at 0.4 TB/s.
TEST(KernelRatesTest, AttentionBackwardAddsUpTheQueryHeadsOfAKeyHead) {
  const Graph graph = AttentionBackward("2");
  EXPECT_EQ(RooflineTime(graph, MakerOf(graph), GpuWithKernels()).ns(), 97'231);
}

}  // namespace
}  // namespace dcsim
