#include "model/cost/kernel_traits.h"

#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "tests/support/error_text.h"
#include "tests/support/workloads.h"

namespace dcsim {
namespace {

/// A graph of one op over fresh inputs. `op` is a line of graph text.
Graph OneOp(const std::string& inputs, const std::string& op) {
  return ParseGraphText("graph g 1 tokens\n" + inputs + "\nforward\n" + op +
                        "\nl: float32[] = my::loss(y)\nloss l\n");
}

// 2 m n k = 2 * 3 * 7 * 5
TEST(CountFlopsTest, MatrixProductIsTwoPerMultiplyAdd) {
  const Graph graph =
      OneOp("input a bfloat16[3,5]\ninput b bfloat16[5,7]", "y: bfloat16[3,7] = aten::mm(a, b)");
  EXPECT_EQ(TraitsOf(graph, OpId(0)).flops, 210);
  EXPECT_EQ(TraitsOf(graph, OpId(0)).op_class(), OpClass::kMatmul);
}

// The first tensor is the bias, which does not count.
TEST(CountFlopsTest, AddedBiasOfAddmmIsFree) {
  const Graph graph = OneOp("input c bfloat16[7]\ninput a bfloat16[3,5]\ninput b bfloat16[5,7]",
                            "y: bfloat16[3,7] = aten::addmm(c, a, b)");
  EXPECT_EQ(TraitsOf(graph, OpId(0)).flops, 210);
}

// 2 b m n k = 2 * 4 * 3 * 7 * 5
TEST(CountFlopsTest, BatchedProductCountsTheBatch) {
  const Graph graph = OneOp("input a bfloat16[4,3,5]\ninput b bfloat16[4,5,7]",
                            "y: bfloat16[4,3,7] = aten::bmm(a, b)");
  EXPECT_EQ(TraitsOf(graph, OpId(0)).flops, 840);
}

TEST(CountFlopsTest, BatchedProductWithAddendCountsTheBatch) {
  const Graph graph =
      OneOp("input c bfloat16[4,3,7]\ninput a bfloat16[4,3,5]\ninput b bfloat16[4,5,7]",
            "y: bfloat16[4,3,7] = aten::baddbmm(c, a, b)");
  EXPECT_EQ(TraitsOf(graph, OpId(0)).flops, 840);
}

/// Two experts: rows of tokens in groups that end where `ends` says.
Graph Grouped(const std::string& left, const std::string& right, const std::string& made) {
  return OneOp(
      "input a bfloat16[" + left + "]\ninput b bfloat16[" + right + "]\ninput ends int32[2]",
      "y: bfloat16[" + made + "] = aten::_grouped_mm(a, b, ends)");
}

// All 30 rows meet one expert's weight each: 2 * 30 * 7 * 5. So do gradients of rows; those of the
// weights sum over the rows.
TEST(CountFlopsTest, GroupedProductCountsAllGroupsTogether) {
  for (const Graph& graph : {Grouped("30,5", "2,5,7", "30,7"), Grouped("5,30", "30,7", "2,5,7"),
                             Grouped("2,7,5", "5,30", "7,30")}) {
    EXPECT_EQ(TraitsOf(graph, OpId(0)).flops, 2'100);
    EXPECT_EQ(TraitsOf(graph, OpId(0)).op_class(), OpClass::kMatmul);
  }
}

// Routing is not known: each of two experts gets half of the rows, columns or depth.
TEST(FindProductTest, GroupsShareWhatTheirOffsetsCut) {
  const auto shape = [](const Graph& graph) { return *TraitsOf(graph, OpId(0)).product; };
  EXPECT_EQ(shape(Grouped("30,5", "2,5,7", "30,7")).rows, 15);
  EXPECT_EQ(shape(Grouped("5,30", "30,7", "2,5,7")).depth, 15);
  EXPECT_EQ(shape(Grouped("2,7,5", "5,30", "7,30")).columns, 15);
  EXPECT_EQ(shape(Grouped("30,5", "2,5,7", "30,7")).products, 2);
}

// The weight is the second tensor; behind it the offsets.
TEST(FindProductTest, FactorsOfAnAddendAndOfGroups) {
  const Graph sum = OneOp("input c bfloat16[7]\ninput a bfloat16[3,5]\ninput b bfloat16[5,7]",
                          "y: bfloat16[3,7] = aten::addmm(c, a, b)");
  const auto factors = TraitsOf(sum, OpId(0)).factors;
  EXPECT_EQ(factors->left->name, "a");
  EXPECT_EQ(factors->right->name, "b");
  const Graph groups = Grouped("30,5", "2,5,7", "30,7");
  EXPECT_EQ(TraitsOf(groups, OpId(0)).factors->right->name, "b");
}

// 2 * 128 elements of the result * 3 channels of 2 x 2.
TEST(CountFlopsTest, ConvolutionCountsTheKernelForEachElement) {
  const Graph graph = OneOp("input x bfloat16[2,3,8,8]\ninput w bfloat16[4,3,2,2]",
                            "y: bfloat16[2,4,4,4] = aten::convolution(x, w)");
  EXPECT_EQ(TraitsOf(graph, OpId(0)).flops, 3'072);
  EXPECT_EQ(TraitsOf(graph, OpId(0)).op_class(), OpClass::kMatmul);
}

// The same the other way round: 2 * 128 elements of the input * 3 channels of 2 x 2.
TEST(CountFlopsTest, TransposedConvolutionCountsTheInput) {
  Graph graph = OneOp("input x bfloat16[2,4,4,4]\ninput w bfloat16[4,3,2,2]",
                      "y: bfloat16[2,3,8,8] = aten::convolution(x, w)");
  Op& op = graph.ops[0];
  graph.schemas[op.schema] =
      "aten::convolution(Tensor input, Tensor weight, bool transposed) -> Tensor";
  op.arguments.emplace_back(true);
  EXPECT_EQ(TraitsOf(graph, OpId(0)).flops, 3'072);
}

// Gradients of input and weight, each what the forward takes; the bias' is a sum.
TEST(CountFlopsTest, ConvolutionBackwardCountsTheGradientsThatAreMade) {
  Graph graph =
      OneOp("input dy bfloat16[2,4,4,4]\ninput x bfloat16[2,3,8,8]\ninput w bfloat16[4,3,2,2]",
            "y: bfloat16[2,3,8,8], dw: bfloat16[4,3,2,2], db: bfloat16[4] = "
            "aten::convolution_backward(dy, x, w)");
  EXPECT_EQ(TraitsOf(graph, OpId(0)).flops, 6'144);
  graph.ops[0].outputs[0] = ValueId::None();
  EXPECT_EQ(TraitsOf(graph, OpId(0)).flops, 3'072);
}

TEST(CountFlopsTest, OtherOpsCountNothing) {
  const Graph graph = OneOp("input a bfloat16[3,5]", "y: bfloat16[3,5] = aten::add.Tensor(a, a)");
  EXPECT_EQ(TraitsOf(graph, OpId(0)).flops, 0);
  EXPECT_EQ(TraitsOf(graph, OpId(0)).op_class(), OpClass::kStreaming);
}

/// Fused attention of `queries` by 8 keys, 2 batches, 3 heads, head_dim 16, with the schema that
/// torch 2.11 prints, cut behind is_causal.
Graph Attention(std::int64_t queries, bool causal) {
  const std::string q = std::to_string(queries);
  Graph graph =
      OneOp("input q bfloat16[2,3," + q + ",16]\ninput k bfloat16[2,3,8,16]",
            "y: bfloat16[2,3," + q + ",16] = aten::_scaled_dot_product_flash_attention(q, k, k)");
  Op& op = graph.ops[0];
  graph.schemas[op.schema] =
      "aten::_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float "
      "dropout_p=0., bool is_causal=False) -> Tensor";
  op.arguments.emplace_back(0.0);
  op.arguments.emplace_back(causal);
  return graph;
}

// Two products of 2 * (2 * 3) * 8 * 8 * 16 each: 4 * 6144 = 24,576.
TEST(CountFlopsTest, AttentionIsTwoProducts) {
  EXPECT_EQ(TraitsOf(Attention(8, false), OpId(0)).flops, 24'576);
  EXPECT_EQ(TraitsOf(Attention(8, false), OpId(0)).op_class(), OpClass::kAttention);
}

TEST(CountFlopsTest, CausalAttentionIsHalfOfIt) {
  EXPECT_EQ(TraitsOf(Attention(8, true), OpId(0)).flops, 12'288);
}

// One query looks at all 8 keys: 4 * 6 * 1 * 8 * 16.
TEST(CountFlopsTest, CausalMaskOfOneQueryHidesNothing) {
  EXPECT_EQ(TraitsOf(Attention(1, true), OpId(0)).flops, 3'072);
}

/// The backward of the above for 8 queries: the output's gradient comes first.
Graph AttentionBackward(bool causal) {
  Graph graph =
      OneOp("input dy bfloat16[2,3,8,16]\ninput q bfloat16[2,3,8,16]\ninput k bfloat16[2,3,8,16]",
            "y: bfloat16[2,3,8,16], dk: bfloat16[2,3,8,16], dv: bfloat16[2,3,8,16] = "
            "aten::_scaled_dot_product_flash_attention_backward(dy, q, k, k)");
  Op& op = graph.ops[0];
  graph.schemas[op.schema] =
      "aten::_scaled_dot_product_flash_attention_backward(Tensor grad_out, Tensor query, Tensor "
      "key, Tensor value, bool is_causal) -> (Tensor grad_query, Tensor grad_key, Tensor "
      "grad_value)";
  op.arguments.emplace_back(causal);
  return graph;
}

// Five products where the forward has two: 5 * 12,288.
TEST(CountFlopsTest, AttentionBackwardIsFiveProducts) {
  EXPECT_EQ(TraitsOf(AttentionBackward(false), OpId(0)).flops, 61'440);
  EXPECT_EQ(TraitsOf(AttentionBackward(false), OpId(0)).op_class(), OpClass::kAttentionBackward);
}

TEST(CountFlopsTest, CausalAttentionBackwardIsHalfOfIt) {
  EXPECT_EQ(TraitsOf(AttentionBackward(true), OpId(0)).flops, 30'720);
}

// 3*5 + 5*7 + 3*7 elements of 2 bytes.
TEST(CountBytesTest, TensorsAreMovedOnceEach) {
  const Graph graph =
      OneOp("input a bfloat16[3,5]\ninput b bfloat16[5,7]", "y: bfloat16[3,7] = aten::mm(a, b)");
  EXPECT_EQ(TraitsOf(graph, OpId(0)).bytes, Bytes(142));
}

// Indices 4 * 8 B, rows read and written 4 * 16 * 2 B each; the table of 1000 rows stays.
TEST(CountBytesTest, EmbeddingReadsTheRowsLookedUp) {
  const Graph graph = OneOp("param w bfloat16[1000,16]\ninput ids int64[4]",
                            "y: bfloat16[4,16] = aten::embedding(w, ids)");
  EXPECT_EQ(TraitsOf(graph, OpId(0)).bytes, Bytes(32 + 128 + 128));
}

// A scalar of 4 bytes, expanded to 6 elements, is read once; the sum writes 24 bytes.
TEST(CountBytesTest, ExpandedTensorHasNoMoreThanItsStorage) {
  Graph graph = OneOp("input s float32[1]",
                      "e: float32[1] views s = aten::expand(s)\n"
                      "y: float32[6] = aten::clone(e)");
  for (Value& value : graph.values) {
    if (value.name == "e") {
      value.shape = {6};
      value.strides = {0};
    }
  }
  EXPECT_EQ(TraitsOf(graph, OpId(1)).bytes, Bytes(4 + 24));
}

// A loss picks one log-probability of each row; its backward writes all gradients.
TEST(CountBytesTest, LossReadsNoLogProbabilities) {
  const Graph forward = OneOp("input a float32[4,9]\ninput t int64[4]",
                              "y: float32[1] = aten::nll_loss_forward(a, t)");
  EXPECT_EQ(TraitsOf(forward, OpId(0)).bytes, Bytes(4 * 8 + 4));
  const Graph backward = OneOp("input g float32[1]\ninput a float32[4,9]\ninput t int64[4]",
                               "y: float32[4,9] = aten::nll_loss_backward(g, a, t)");
  EXPECT_EQ(TraitsOf(backward, OpId(0)).bytes, Bytes(4 + 4 * 8 + 4 * 36));
}

TEST(CountBytesTest, UnusedReturnsAreNotWritten) {
  const Graph graph = OneOp("input a float32[4]", "y: float32[4], _ = aten::native_dropout(a)");
  EXPECT_EQ(TraitsOf(graph, OpId(0)).bytes, Bytes(16 + 16));
}

std::string ClassifyError(const std::string& op) {
  const Graph graph =
      OneOp("input a bfloat16[3,5]\ninput b bfloat16[5]", "y: bfloat16[3] = " + op + "(a, b)");
  return ErrorText([&] { TraitsOf(graph, OpId(0)); });
}

TEST(ClassifyOpTest, UnknownProductsAreRefusedByName) {
  for (const std::string op : {"aten::_scaled_mm",
                               "aten::mv",
                               "aten::addmv",
                               "aten::dot",
                               "aten::vdot",
                               "aten::_int_mm",
                               "aten::linear",
                               "aten::matmul.out",
                               "aten::einsum",
                               "aten::conv2d",
                               "aten::conv_tbc",
                               "aten::cudnn_convolution",
                               "aten::_trilinear",
                               "aten::_cdist_forward",
                               "aten::lstm.input",
                               "aten::linalg_solve",
                               "aten::_sparse_mm",
                               "aten::_cudnn_rnn",
                               "aten::_weight_int4pack_mm",
                               "aten::_cudnn_attention_forward",
                               "flash_attn::_flash_attn_forward",
                               "my::gemm_fp8"}) {
    EXPECT_TRUE(ClassifyError(op).starts_with("g: op 0, " + op + ": a product whose time")) << op;
  }
}

TEST(ClassifyOpTest, NamesThatSoundAlikeAreNoProducts) {
  for (const std::string op :
       {"aten::mul.Tensor", "aten::addcmul", "aten::upsample_bilinear2d", "aten::dropout",
        "aten::linalg_vector_norm", "aten::_thnn_fused_lstm_cell", "aten::cumsum", "aten::conj",
        "aten::convert_element_type", "aten::native_layer_norm", "my::loss"}) {
    const Graph graph = OneOp("input a bfloat16[3]", "y: bfloat16[3] = " + op + "(a)");
    EXPECT_EQ(TraitsOf(graph, OpId(0)).op_class(), OpClass::kStreaming) << op;
  }
}

TEST(CountFlopsTest, AttentionOfOtherShapesIsRefused) {
  const Graph graph =
      OneOp("input q bfloat16[8,64]\ninput k bfloat16[8,64]\ninput v bfloat16[8,64]",
            "y: bfloat16[8,64] = aten::_flash_attention_forward(q, k, v)");
  EXPECT_EQ(ErrorText([&] { TraitsOf(graph, OpId(0)); }),
            "g: op 0, aten::_flash_attention_forward: expected queries, keys and values of four "
            "dimensions");
}

// Nothing that was recorded is refused.
TEST(ClassifyOpTest, AllOpsOfCommittedWorkloadsAreKnown) {
  for (const std::string name : {"tiny-llama", "qwen3-8b", "mlp-8x4096", "llama-3.2-1b"}) {
    EXPECT_GT(CountModelFlops(WorkloadGraph(name)), 0) << name;
  }
}

TEST(CountModelFlopsTest, RecomputedOpsDoNotCount) {
  const Graph graph = ParseGraphText(R"(
graph g 1 tokens
input a float32[3,5]
input b float32[5,7]
forward
  y: float32[3,7] = aten::mm(a, b)
  l: float32[] = my::loss(y)
  loss l
backward
  z: float32[3,7] = aten::mm(a, b) recompute
)");
  EXPECT_EQ(CountModelFlops(graph), 210);
}

// Under autocast a float32 model multiplies in bfloat16.
TEST(ModelFlopsByDTypeTest, ResultsSayInWhatAProductIsMade) {
  const Graph graph = ParseGraphText(R"(
graph g 1 tokens
param w float32[5,7]
input a bfloat16[3,5]
input b float32[3,5]
forward
  c: bfloat16[5,7] = aten::_to_copy(w)
  y: bfloat16[3,7] = aten::mm(a, c)
  z: float32[3,7] = aten::mm(b, w)
  l: float32[] = my::loss(y, z)
  loss l
)");
  const std::map<DType, std::int64_t> expected = {{DType::kBFloat16, 210}, {DType::kFloat32, 210}};
  EXPECT_EQ(ModelFlopsByDType(graph), expected);
}

// Eight layers y = x W^T, x [2048, 4096], W [4096, 4096]. A product takes 2 * 2048 * 4096^2. Each
// layer has three (y, the gradients of W and of x), except the first, whose input needs no
// gradient: 8 * 3 - 1 = 23.
TEST(CountModelFlopsTest, MlpHasTwentyThreeProducts) {
  constexpr std::int64_t kProduct = std::int64_t{2} * 2048 * 4096 * 4096;
  EXPECT_EQ(CountModelFlops(WorkloadGraph("mlp-8x4096")), 23 * kProduct);
}

// 6 N + 12 L H Q T of Qwen3-8B on 4096 tokens, causal attention counted half: N are the weights of
// its products, 36 layers of q, o 4096^2; k, v 1024 * 4096; gate, up, down 12288 * 4096; the head
// 151936 * 4096; 32 heads of 128. Rotary frequencies as below.
TEST(CountModelFlopsTest, QwenIsSixTimesItsWeightsAndTwelveTimesItsAttention) {
  constexpr std::int64_t kTokens = 4096;
  constexpr std::int64_t kLayer = 2 * (4096 * 4096 + 1024 * 4096) + 3 * 12288 * 4096;
  constexpr std::int64_t kWeights = 36 * kLayer + std::int64_t{151936} * 4096;
  constexpr std::int64_t kAttention = std::int64_t{12} * 36 * 32 * 128 * kTokens * kTokens / 2;
  EXPECT_EQ(CountModelFlops(WorkloadGraph("qwen3-8b")),
            6 * kTokens * kWeights + kAttention + 128 * kTokens);
}

// Forward of Llama-3-8B on 512 tokens: 2 flops a weight of each product and token, attention
// halved by causality. Weights of a layer's products: q, o 4096^2; k, v 1024 * 4096; gate, up, down
// 14336 * 4096; 32 layers; head 128256 * 4096. Attention of a layer, 32 heads of 128:
// 4 * 32 * 512 * 512 * 128 / 2. The backward has two products for each one, of attention, too: the
// scores that its kernel computes again do not count. The graph has besides, forward only, rotary
// frequencies: [64, 1] x [1, 512], 2 * 32768.
TEST(CountModelFlopsTest, LlamaIsThreeTimesItsForwardProducts) {
  constexpr std::int64_t kTokens = 512;
  constexpr std::int64_t kLayer = 2 * (4096 * 4096 + 1024 * 4096) + 3 * 14336 * 4096;
  constexpr std::int64_t kWeights = 32 * kLayer + std::int64_t{128256} * 4096;
  constexpr std::int64_t kAttention = std::int64_t{4} * 32 * kTokens * kTokens * 128 / 2;
  constexpr std::int64_t kRotary = 128 * kTokens;
  const std::int64_t expected = 6 * kTokens * kWeights + 32 * 3 * kAttention + kRotary;
  EXPECT_EQ(CountModelFlops(WorkloadGraph("llama-3-8b")), expected);
}

}  // namespace
}  // namespace dcsim
