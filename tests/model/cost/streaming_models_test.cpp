// Ops without products that nobody has profiled: how they go through memory, and how long that
// takes on the GPU of gpu_with_kernels.h.

#include <gtest/gtest.h>

#include "model/cost/element_access.h"
#include "model/cost/kernel_models.h"
#include "tests/model/cost/gpu_with_kernels.h"
#include "tests/support/row_name.h"

namespace dcsim {
namespace {

struct AccessRow {
  std::string name;
  std::string tensors;
  std::string op;
  ElementAccess expected;
};

std::vector<AccessRow> Rows() {
  const std::string pair = "input a float32[8,6]\ninput b float32[8,6]";
  return {
      {"DenseTensorsOfOneKind", pair, "y: float32[8,6] = aten::add(a, b)", ElementAccess::kPlain},
      {"AScalarBeside", pair + "\ninput s float64[1]", "y: float32[8,6] = aten::mul(a, s)",
       ElementAccess::kPlain},
      {"AnIndexBeside", pair + "\ninput t int64[8]", "y: float32[8,6] = aten::pick(a, t)",
       ElementAccess::kPlain},
      {"WrittenShorter", pair, "y: bfloat16[8,6] = aten::_to_copy(a)", ElementAccess::kPlain},
      {"WrittenLonger", "input a bfloat16[8,6]", "y: float32[8,6] = aten::_to_copy(a)",
       ElementAccess::kAlike},
      {"TwoDTypes", "input a float32[8,6]\ninput b bfloat16[8,6]",
       "y: float32[8,6] = aten::mul(a, b)", ElementAccess::kConverted},
      {"ARowForAll", pair + "\ninput w float32[6]", "y: float32[8,6] = aten::mul(a, w)",
       ElementAccess::kBroadcast},
  };
}

class AccessTest : public testing::TestWithParam<AccessRow> {};

TEST_P(AccessTest, IsThatOfItsTensors) {
  const Graph graph = OneOp(GetParam().tensors, GetParam().op);
  EXPECT_EQ(TraitsOf(graph, MakerOf(graph)).access, GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(Ops, AccessTest, testing::ValuesIn(Rows()), RowName());

// A slice of wider rows has holes; of a transposed tensor neighbours in the result lie apart; with
// all tensors transposed alike the kernel walks through them as they lie.
TEST(AccessTest, LayoutsDecide) {
  const Graph graph = OneOp("input a float32[8,6]", "y: float32[8,6] = aten::neg(a)");
  const OpId op = MakerOf(graph);
  EXPECT_EQ(TraitsOf(WithStrides(graph, "a", {12, 1}), op).access, ElementAccess::kBroadcast);
  const Graph transposed = WithStrides(graph, "a", {1, 8});
  EXPECT_EQ(TraitsOf(transposed, op).access, ElementAccess::kTransposed);
  EXPECT_EQ(TraitsOf(WithStrides(transposed, "y", {1, 8}), op).access, ElementAccess::kPlain);
  // Every second element, as interleaved halves are read: neighbours share a sector of 32 bytes.
  EXPECT_EQ(TraitsOf(WithStrides(graph, "a", {12, 2}), op).access, ElementAccess::kBroadcast);
}

// Heads before words in one, words before heads in the other; alone that is only another layout.
TEST(AccessTest, TwoLayoutsArePermuted) {
  const std::string heads = "float32[1,4,8,16]";
  const Graph two =
      OneOp("input a " + heads + "\ninput b " + heads, "y: " + heads + " = aten::add(a, b)");
  const Graph one = OneOp("input a " + heads, "y: " + heads + " = aten::clone(a)");
  EXPECT_EQ(TraitsOf(WithStrides(two, "b", {512, 16, 64, 1}), MakerOf(two)).access,
            ElementAccess::kPermuted);
  EXPECT_EQ(TraitsOf(WithStrides(one, "a", {512, 16, 64, 1}), MakerOf(one)).access,
            ElementAccess::kAlike);
}

// 12 MB at half of 2 TB/s; GELU at a fifth (8 MB).
TEST(MemorySecondsTest, DenseTensorsTakeTheTimeOfTheirBytes) {
  const std::string pair = "input a float32[1000000]\ninput b float32[1000000]";
  EXPECT_EQ(TimeOf(OneOp(pair, "y: float32[1000000] = aten::add(a, b)")), 12'000);
  EXPECT_EQ(TimeOf(OneOp(pair, "y: float32[1000000] = aten::gelu(a)")), 20'000);
}

// A million elements take 10 us in float32 and 5 in half precision (8 and 4 MB at half of 2 TB/s
// would take 8 and 4); 12 us where the bytes need them.
TEST(MemorySecondsTest, BroadcastsAreBoundByElements) {
  const auto time = [](const std::string& dtype, const std::string& more) {
    return TimeOf(OneOp("input a " + dtype + "[1000,1000]\ninput w " + dtype + "[1000]",
                        "y: " + dtype + "[1000,1000] = aten::mul(a, w" + more + ")"));
  };
  EXPECT_EQ(time("float32", ""), 10'000);
  EXPECT_EQ(time("bfloat16", ""), 5'000);
  EXPECT_EQ(time("float32", ", a"), 12'004);
}

// The same where one element of the GPU's is broadcast.
TEST(MemorySecondsTest, OneElementIsBroadcast) {
  EXPECT_EQ(TimeOf(OneOp("input a bfloat16[1000,1000]\ninput s bfloat16[]",
                         "y: bfloat16[1000,1000] = aten::div.Tensor(a, s)")),
            5'000);
}

// A million elements at 40, 20 and 25 a ns.
TEST(MemorySecondsTest, EachAccessHasItsRate) {
  EXPECT_EQ(TimeOf(OneOp("input a float32[1000,1000]\ninput b bfloat16[1000,1000]",
                         "y: float32[1000,1000] = aten::mul(a, b)")),
            25'000);
  const Graph clone = OneOp("input a float32[1000,1000]", "y: float32[1000,1000] = aten::clone(a)");
  EXPECT_EQ(TimeOf(WithStrides(clone, "a", {1, 1000})), 50'000);
}

// 4 MB in and out at half of 2 TB/s; at 25 elements a ns where a part has another layout.
TEST(MemorySecondsTest, PartsThatAreNotContiguousAreConcatenatedByElements) {
  const Graph graph = OneOp("input a float32[500,500]\ninput b float32[500,1500]",
                            "y: float32[500,2000] = aten::cat(a, b)");
  EXPECT_EQ(TimeOf(graph), 8'000);
  EXPECT_EQ(TimeOf(WithStrides(graph, "a", {1000, 1})), 40'000);
}

// 4 MB of the first operand in and out at half of 2 TB/s, then the second's; of a first operand
// whose rows lie 4,000 elements apart all 3,997,000 from its first to its last.
TEST(MemorySecondsTest, ACopyTakesWhatLiesBetweenTheElements) {
  const Graph graph = OneOp("input a float32[1000,1000]\ninput b float32[1000,1000]",
                            "y: float32[1000,1000] = aten::copy(a, b)");
  EXPECT_EQ(TimeOf(graph), 8'000 + 8'000);
  const Graph apart = WithStrides(graph, "a", {4000, 1});
  const Graph alone = OneOp("input a float32[3997000]", "y: float32[3997000] = aten::clone(a)");
  EXPECT_EQ(TimeOf(apart) - TimeOf(alone), 8'000);
}

// A million elements are filled in 2 us (4 MB at all of 2 TB/s), half of them copied in 5.
TEST(MemorySecondsTest, BackwardOfASliceFillsAndCopies) {
  EXPECT_EQ(
      TimeOf(OneOp("input a float32[1000,500]", "y: float32[1000,1000] = aten::slice_backward(a)")),
      7'000);
}

// Bytes at 1, 0.5 and 0.4 TB/s: of rows of 1,000 elements in registers, 2,000 with fewer warps,
// 4,000 read again.
TEST(MemorySecondsTest, SoftmaxGoesByTheLengthOfItsRows) {
  const auto time = [](const std::string& shape, const std::string& op) {
    return TimeOf(OneOp("input a float32[" + shape + "]\ninput b float32[" + shape + "]",
                        "y: float32[" + shape + "] = aten::" + op));
  };
  EXPECT_EQ(time("4000,1000", "_softmax(a)"), 32'000);
  EXPECT_EQ(time("2000,2000", "_log_softmax(a)"), 64'000);
  EXPECT_EQ(time("1000,4000", "_softmax(a)"), 80'000);
  EXPECT_EQ(time("1000,4000", "_log_softmax_backward_data(a, b)"), 240'000);
  // Gradient times result comes before, 48 MB at 1 TB/s.
  EXPECT_EQ(time("4000,1000", "_softmax_backward_data(a, b)"), 96'000);
  EXPECT_EQ(time("1000,4000", "_softmax_backward_data(a, b)"), 288'000);
}

// Rows that fill multiples of 16 bytes at 0.5 TB/s; others a block each, two on each of 100
// multiprocessors, of 3 us.
TEST(MemorySecondsTest, UnevenRowsTakeABlockEach) {
  const auto time = [](const std::string& shape) {
    return TimeOf(
        OneOp("input a bfloat16[" + shape + "]", "y: bfloat16[" + shape + "] = aten::_softmax(a)"));
  };
  EXPECT_EQ(time("1000,1032"), 8'256);
  EXPECT_EQ(time("1000,1025"), 15'000);
  EXPECT_EQ(time("1000,1001"), 4'004);  // short ones lie in registers
}

// Outputs that lie together are made of values 4,000 bytes apart: eight million sectors of 32 bytes
// at 2 TB/s, behind 1 us. Of neighbours, four outputs a thread: 36 MB at 0.4 TB/s, and 1,954 blocks
// of 128 threads of 100 * 2,048 in 2 us.
TEST(MemorySecondsTest, SumsOfValuesThatLieApartReadWholeSectors) {
  const Graph graph =
      OneOp("input a float32[1000,1000,8]", "y: float32[1000,1000,1] = aten::sum.dim_IntList(a)");
  EXPECT_EQ(TimeOf(WithStrides(graph, "a", {1, 1000, 1'000'000})), 1'000 + 128'000);
  EXPECT_EQ(TimeOf(WithStrides(graph, "a", {1000, 1, 1'000'000})), 1'000 + 90'000 + 2'443);
}

// Besides 32 MB of softmax: 20 MB of masks at 1 TB/s, 4 MB of them read at 0.4 behind 1 us, and
// four million elements at 100 a ns.
TEST(MemorySecondsTest, SafeSoftmaxLooksForRowsWithoutAnElement) {
  EXPECT_EQ(
      TimeOf(OneOp("input a float32[4000,1000]", "y: float32[4000,1000] = aten::_safe_softmax(a)")),
      32'000 + 20'000 + 11'000 + 40'000);
}

// 1,000 rows: 8.008 MB at 0.4 TB/s and 1 us.
TEST(MemorySecondsTest, LayerNormTakesAThreadBlockARow) {
  EXPECT_EQ(TimeOf(OneOp("input a float32[1000,1000]",
                         "y: float32[1000,1000], m: float32[1000,1], d: float32[1000,1] = "
                         "aten::native_layer_norm(a)")),
            20'020 + 1'000);
}

// A million elements whose neighbours lie apart are copied at 20 a ns before.
TEST(MemorySecondsTest, LayerNormCopiesWhatIsNotContiguous) {
  const Graph graph = OneOp("input a float32[1000,1000]",
                            "y: float32[1000,1000], m: float32[1000,1], d: float32[1000,1] = "
                            "aten::native_layer_norm(a)");
  EXPECT_EQ(TimeOf(WithStrides(graph, "a", {1, 1000})), 50'000 + 20'020 + 1'000);
}

// 12.016 MB at 0.2 TB/s and 2 us for rows; 32 blocks of 32 columns go down the rows in 10 us.
TEST(MemorySecondsTest, BackwardOfALayerNormSumsColumns) {
  const std::string tensors =
      "input g float32[1000,1000]\ninput a float32[1000,1000]\ninput m float32[1000,1]\n"
      "input d float32[1000,1]";
  const std::string made = "y: float32[1000,1000]";
  const std::string op = " = aten::native_layer_norm_backward(g, a, m, d)";
  EXPECT_EQ(TimeOf(OneOp(tensors, made + op)), 60'040 + 2'000);
  EXPECT_EQ(TimeOf(OneOp(tensors, made + ", w: float32[1000]" + op)), 60'060 + 2'000 + 10'000);
}

// A million elements at 12.5 a ns in each of two kernels.
TEST(MemorySecondsTest, RollTakesAKernelADimension) {
  Graph graph = OneOp("input a float32[1000,1000]", "y: float32[1000,1000] = aten::roll(a)");
  graph.ops[MakerOf(graph).index()].arguments.emplace_back(std::vector<std::int64_t>{3, 3});
  graph.ops[MakerOf(graph).index()].arguments.emplace_back(std::vector<std::int64_t>{0, 1});
  EXPECT_EQ(TimeOf(graph), 160'000);
}

// 4 MB read and written at 1 TB/s; 500,000 elements at 200 a ns.
TEST(MemorySecondsTest, PaddingByNothingOrLessCopies) {
  const auto time = [](const std::string& result) {
    return TimeOf(
        OneOp("input a float32[1000,1000]", "y: " + result + " = aten::constant_pad_nd(a)"));
  };
  EXPECT_EQ(time("float32[1000,1000]"), 8'000);
  EXPECT_EQ(time("float32[1000,500]"), 4'000);
}

// 5,000 rows of 8 bytes are 5 us at one a ns (0.12 MB would take 0.12).
TEST(MemorySecondsTest, ShortRowsOfAnEmbeddingAreBoundByTheirNumber) {
  EXPECT_EQ(TimeOf(OneOp("input w float32[100,2]\ninput t int64[5000]",
                         "y: float32[5000,2] = aten::embedding(w, t)")),
            5'000);
}

// Filling 4 MB in 2 us; 3,000 indices of 10 ns, or 50 us and 400,000 elements at 10 a ns.
TEST(MemorySecondsTest, BackwardOfAnEmbeddingSortsManyIndices) {
  const auto time = [](const std::string& indices) {
    return TimeOf(OneOp("input g float32[" + indices + ",100]\ninput t int64[" + indices + "]",
                        "y: float32[10000,100] = aten::embedding_dense_backward(g, t)"));
  };
  EXPECT_EQ(time("3000"), 2'000 + 30'000);
  EXPECT_EQ(time("4000"), 2'000 + 50'000 + 40'000);
}

/// An op whose second argument is a list of indices, the first `none` of them left out.
Graph Indexed(const std::string& tensors, const std::string& op, std::size_t none, bool adds) {
  Graph graph = OneOp(tensors, op);
  Op& made = graph.ops[MakerOf(graph).index()];
  std::vector<ValueId> indices(none + 1, ValueId::None());
  indices.back() = made.inputs[1];
  made.arguments.emplace_back(indices);
  made.arguments.emplace_back(adds);
  return graph;
}

// Rows of 100 elements: 4 MB out of as many bytes at half of 2 TB/s (10,000 rows at one a ns would
// take 10 us); without a row behind the index 2.5 million elements at 50 a ns.
TEST(MemorySecondsTest, RowsAreLookedUpWhole) {
  EXPECT_EQ(TimeOf(Indexed("input a float32[50,1000]\ninput t int64[10000]",
                           "y: float32[10000,1000] = aten::index.Tensor(a, t)", 0, false)),
            80'000);
  EXPECT_EQ(TimeOf(Indexed("input a float32[50,20]\ninput t int64[50000]",
                           "y: float32[50,50000] = aten::index.Tensor(a, t)", 1, false)),
            50'000);
}

// 40,000 bytes are copied in 0.08 us. 1,000 rows of 1,000: at 100 elements a ns when they replace
// what is there; added, behind 20 us, at 50 and 2 us for each of a hundred that share a row; one by
// one at one a ns, as what they are added to.
TEST(MemorySecondsTest, AddingByIndexSortsFirst) {
  const std::string tensors =
      "input a float32[10,1000]\ninput t int64[1000]\ninput v float32[1000,1000]";
  const std::string op = "y: float32[10,1000] = aten::index_put(a, t, v)";
  EXPECT_EQ(TimeOf(Indexed(tensors, op, 0, false)), 80 + 10'000);
  EXPECT_EQ(TimeOf(Indexed(tensors, op, 0, true)), 80 + 20'000 + 20'000 + 200'000);
  EXPECT_EQ(TimeOf(Indexed(tensors, op, 1, true)), 80 + 20'000 + 1'000'000 + 10'000);
}

// 80 bytes are copied; 5,000 indices are sorted in several kernels, 80 us; their rows of one take
// 5,000 / 50 ns, and 500 share one.
TEST(MemorySecondsTest, ManyIndicesTakeLongerToSort) {
  EXPECT_EQ(TimeOf(Indexed("input a float32[10,2]\ninput t int64[5000]\ninput v float32[5000,2]",
                           "y: float32[10,2] = aten::index_put(a, t, v)", 0, true)),
            80'001 + 200 + 1'000'000);
}

/// A million elements in so many groups.
std::int64_t GroupNormTime(const std::string& groups) {
  const std::string image = "float32[1,100,100,100]";
  return TimeOf(OneOp("input a " + image, "y: " + image + ", m: float32[1," + groups +
                                              "] = aten::native_group_norm(a)"));
}

// A thread block sums each group, one a ns and 200 elements a ns; of ten groups each takes its
// block 100,000 elements at 2 a ns. Then a million are written at 100, starting 1 us.
TEST(MemorySecondsTest, GroupNormsAreBoundByElementsOrByTheirGroups) {
  EXPECT_EQ(GroupNormTime("1000"), 1'000 + 1'000 + 5'000 + 10'000);
  EXPECT_EQ(GroupNormTime("10"), 1'000 + 50'000 + 10'000);
}

// 100 channels of 10,000 elements at half a block and 200 elements a ns, an image 200 ns; 10,000 of
// 100 at one block and 400 elements, ten images 100 ns each. All are written at 100.
TEST(MemorySecondsTest, BackwardOfAGroupNormSumsTheChannelsOfImages) {
  const auto time = [](const std::string& image) {
    return TimeOf(OneOp("input g " + image + "\ninput a " + image,
                        "y: " + image + " = aten::native_group_norm_backward(g, a)"));
  };
  EXPECT_EQ(time("float32[1,100,100,100]"), 3'000 + 200 + 200 + 5'000 + 10'000);
  EXPECT_EQ(time("float32[10,1000,10,10]"), 3'000 + 1'000 + 10'000 + 2'500 + 10'000);
}

// A million windows of 3 x 3 at 400 elements a ns, and 200 in the backward.
TEST(MemorySecondsTest, PoolingReadsEveryElementOfEveryWindow) {
  const std::string image = "float32[1,100,100,100]";
  const std::string inputs = "input a " + image + "\ninput g " + image;
  const auto time = [](const std::string& tensors, const std::string& op, std::int64_t window) {
    Graph graph = OneOp(tensors, op);
    auto& arguments = graph.ops[MakerOf(graph).index()].arguments;
    arguments.emplace_back(std::vector<std::int64_t>{window, window});
    arguments.emplace_back(std::vector<std::int64_t>{1, 1});
    return TimeOf(graph);
  };
  EXPECT_EQ(time(inputs, "y: " + image + " = aten::avg_pool2d(a)", 3), 22'500);
  EXPECT_EQ(time(inputs, "y: " + image + " = aten::avg_pool2d_backward(g, a)", 3), 45'000);
  // One mean of each image, by a window that is larger than it.
  const std::string means = "float32[1,100,1,1]";
  EXPECT_EQ(time(inputs, "y: " + means + " = aten::avg_pool2d(a)", 1792), 2'500);
  EXPECT_EQ(time("input a " + image + "\ninput g " + means,
                 "y: " + image + " = aten::avg_pool2d_backward(g, a)", 1792),
            5'000);
}

// A million windows of 3 x 3 at 300 elements a ns, and 100 in the backward.
TEST(MemorySecondsTest, MaximaAreNoMeans) {
  const std::string image = "float32[1,100,100,100]";
  const auto time = [&](const std::string& op) {
    Graph graph = OneOp("input a " + image + "\ninput g " + image, "y: " + image + " = " + op);
    graph.ops[MakerOf(graph).index()].arguments.emplace_back(std::vector<std::int64_t>{3, 3});
    return TimeOf(graph);
  };
  EXPECT_EQ(time("aten::max_pool2d_with_indices(a)"), 30'000);
  EXPECT_EQ(time("aten::max_pool2d_with_indices_backward(g, a)"), 90'000);
}

// Nine million elements of columns at 100 and 50 a ns; neighbours apart are copied first, at 20.
TEST(MemorySecondsTest, WindowsAreUnfoldedAndFolded) {
  const std::string image = "float32[1,100,100,100]";
  const std::string columns = "float32[1,900,10000]";
  EXPECT_EQ(TimeOf(OneOp("input a " + image, "y: " + columns + " = aten::im2col(a)")), 90'000);
  const Graph folded = OneOp("input a " + columns, "y: " + image + " = aten::col2im(a)");
  EXPECT_EQ(TimeOf(folded), 180'000);
  EXPECT_EQ(TimeOf(WithStrides(folded, "a", {9'000'000, 1, 900})), 180'000 + 450'000);
}

// 1,000 rows of 600 in half precision, filled up to 1,024, at 400 elements a ns; their 2.4 MB take
// 2.4 us. Rows of float32 take 4.8 for their bytes.
TEST(MemorySecondsTest, ShortRowsOfASoftmaxFillUpWarps) {
  const auto time = [](const std::string& shape) {
    return TimeOf(OneOp("input a " + shape, "y: " + shape + " = aten::_softmax(a)"));
  };
  EXPECT_EQ(time("bfloat16[1000,600]"), 2'560);
  EXPECT_EQ(time("float32[1000,600]"), 4'800);
}

// 1,000 indices of ten rows of 1,000. Gathered at 200 a ns; scattered, behind a copy of 40 kB there
// and back at 0.5 TB/s, at 200 or, added, at 100.
TEST(MemorySecondsTest, ElementsByIndexGoOneByOne) {
  const std::string tensors =
      "input a float32[10,1000]\ninput i int64[10,100]\ninput v float32[10,100]";
  EXPECT_EQ(TimeOf(OneOp(tensors, "y: float32[10,100] = aten::gather(a, i)")), 2'000);
  EXPECT_EQ(TimeOf(OneOp(tensors, "y: float32[10,1000] = aten::scatter.src(a, i, v)")), 2'000);
  EXPECT_EQ(TimeOf(OneOp(tensors, "y: float32[10,1000] = aten::scatter_add(a, i, v)")), 2'000);
}

// A thread block of 512 a row: 1 us, 40.961 MB at 0.4 TB/s, and 256 * 512 threads of 100 * 2,048 in
// waves of 2 us.
TEST(MemorySecondsTest, SumAlongRowsIsBytesAndWaves) {
  EXPECT_EQ(TimeOf(OneOp("input a float32[256,40000]", "y: float32[256,1] = aten::sum(a)")),
            1'000 + 102'403 + 1'280);
}

// Two blocks of 128 threads make 128 columns each; their rows are cut in 800 parts, so that 1,600
// blocks fill 100 multiprocessors in one wave of 2 us. 26.215 MB at 0.4 TB/s.
TEST(MemorySecondsTest, SumOfAFewColumnsJoinsParts) {
  const Graph graph = OneOp("input a bfloat16[51200,256]", "y: bfloat16[1,256] = aten::sum(a)");
  EXPECT_EQ(TimeOf(graph), 1'000 + 65'538 + 2'000 + 4'000 + 800 * 5'000);
}

// A thread adds 32 values four at a time, 3 us each.
TEST(MemorySecondsTest, SumOfFewRowsIsBoundByItsThreads) {
  EXPECT_EQ(TimeOf(OneOp("input a bfloat16[128,1000]", "y: bfloat16[1,1000] = aten::sum(a)")),
            1'000 + 8 * 3'000);
}

}  // namespace
}  // namespace dcsim
