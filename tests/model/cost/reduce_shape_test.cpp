// Thread blocks of sums as the profiles of traces/ have them on an H200 of 132 multiprocessors
// (grid and block of CUPTI's kernel records).

#include "model/cost/reduce_shape.h"

#include <gtest/gtest.h>

#include "tests/model/cost/gpu_with_kernels.h"
#include "tests/support/row_name.h"

namespace dcsim {
namespace {

constexpr int kMultiprocessors = 132;

struct ShapeRow {
  std::string name;
  std::string read;
  std::string made;
  std::int64_t blocks;
  std::int64_t threads;
  std::int64_t parts;
};

std::vector<ShapeRow> Rows() {
  return {
      {"NormOfQwen", "float32[1,4096,4096]", "float32[1,4096,1]", 256, 512, 1},
      {"NormsOfHeads", "float32[1,4096,32,128]", "float32[1,4096,32,1]", 8192, 512, 1},
      {"NormOfFewWords", "float32[1,512,4096]", "float32[1,512,1]", 32, 512, 1},
      {"WeightOfANorm", "bfloat16[1,4096,4096]", "bfloat16[1,1,4096]", 2048, 128, 64},
      {"WeightOfAHeadsNorm", "bfloat16[1,4096,32,128]", "bfloat16[1,1,1,128]", 2048, 128, 2048},
      {"BiasOfBert", "bfloat16[16384,1024]", "bfloat16[1,1024]", 2048, 128, 256},
      {"BiasOfVit", "bfloat16[25216,4096]", "bfloat16[1,4096]", 2112, 128, 66},
      {"BiasOfAVocabulary", "bfloat16[16384,30522]", "bfloat16[1,30522]", 3816, 256, 8},
      {"BiasOfAClassifier", "bfloat16[128,1000]", "bfloat16[1,1000]", 8, 128, 1},
      {"OverTheBatch", "float32[16,16,512,512]", "float32[1,16,512,512]", 8192, 128, 1},
  };
}

class ReduceShapeTest : public testing::TestWithParam<ShapeRow> {};

TEST_P(ReduceShapeTest, IsThatOfTheMeasuredKernel) {
  const Graph graph =
      OneOp("input a " + GetParam().read, "y: " + GetParam().made + " = aten::sum.dim_IntList(a)");
  const auto shape = FindReduceShape(TraitsOf(graph, MakerOf(graph)), kMultiprocessors);
  ASSERT_TRUE(shape.has_value());
  EXPECT_EQ(shape->blocks, GetParam().blocks);
  EXPECT_EQ(shape->threads, GetParam().threads);
  EXPECT_EQ(shape->parts, GetParam().parts);
}

INSTANTIATE_TEST_SUITE_P(Profiles, ReduceShapeTest, testing::ValuesIn(Rows()), RowName());

// Without the reduced dimension in its result the op's own list says which it is.
TEST(ReduceShapeTest, DimensionsThatAreLeftOutAreTheOnesNamed) {
  Graph graph =
      OneOp("input a bfloat16[16384,1024]", "y: bfloat16[1024] = aten::sum.dim_IntList(a)");
  const OpId op = MakerOf(graph);
  graph.ops[op.index()].arguments.emplace_back(std::vector<std::int64_t>{-2});
  const auto shape = FindReduceShape(TraitsOf(graph, op), kMultiprocessors);
  ASSERT_TRUE(shape.has_value());
  EXPECT_EQ(shape->blocks, 2048);
}

// Half of a sum of mamba2-780m (PyTorch cuts what has more than 2^31 bytes in two): a result's
// neighbours are 16,384 elements apart in what is read, the values of a sum 256.
TEST(ReduceShapeTest, GoesThroughOutputsAsTheyAreWritten) {
  Graph graph = OneOp("input a float32[1,2,256,256,48,64]",
                      "y: float32[1,2,256,256,48,1] = aten::sum.dim_IntList(a)");
  graph.values.front().strides = {805'306'368, 201'326'592, 786'432, 1, 16'384, 256};
  const auto shape = FindReduceShape(TraitsOf(graph, MakerOf(graph)), kMultiprocessors);
  ASSERT_TRUE(shape.has_value());
  EXPECT_EQ(shape->blocks, 393'216);
  EXPECT_EQ(shape->threads, 512);
  EXPECT_EQ(shape->apart, Bytes(1024));
}

TEST(ReduceShapeTest, OtherOpsHaveNone) {
  const Graph graph = OneOp("input a float32[8,6]", "y: float32[8,6] = aten::sum_up(a)");
  EXPECT_FALSE(FindReduceShape(TraitsOf(graph, MakerOf(graph)), kMultiprocessors).has_value());
}

}  // namespace
}  // namespace dcsim
