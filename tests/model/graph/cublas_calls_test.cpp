#include "model/graph/cublas_calls.h"

#include <gtest/gtest.h>

#include "model/ir/graph_text.h"

namespace dcsim {
namespace {

/// One op of x [2,3], w [3,5], a vector and a matrix to add.
Graph OneOp(const std::string& op) {
  return ParseGraphText(R"(
graph product 2 tokens
param w bfloat16[3,5]
param bias bfloat16[5]
param matrix bfloat16[2,5]
input x bfloat16[2,3]
forward
  a: bfloat16[2,5] = )" +
                        op + R"(
  l: bfloat16[] = aten::sum(a)
  loss l
)");
}

TEST(CublasCallsTest, ProductsCallItAndSumsDoNot) {
  EXPECT_TRUE(CallsCublas(OneOp("aten::mm(x, w)"), OpId(0)));
  EXPECT_TRUE(CallsCublas(OneOp("aten::addmm(matrix, x, w)"), OpId(0)));
  EXPECT_FALSE(CallsCublas(OneOp("aten::mm(x, w)"), OpId(1)));
}

// Grouped products are CUTLASS's, convolutions cuDNN's.
TEST(CublasCallsTest, ProductsOfOtherLibrariesDoNot) {
  EXPECT_FALSE(CallsCublas(OneOp("aten::_grouped_mm(x, w)"), OpId(0)));
  EXPECT_FALSE(CallsCublas(OneOp("aten::convolution(x, w)"), OpId(0)));
}

TEST(CublasCallsTest, OnlyAVectorIsABias) {
  EXPECT_TRUE(AddsBias(OneOp("aten::addmm(bias, x, w)"), OpId(0)));
  EXPECT_FALSE(AddsBias(OneOp("aten::addmm(matrix, x, w)"), OpId(0)));
  EXPECT_FALSE(AddsBias(OneOp("aten::mm(x, w)"), OpId(0)));
}

}  // namespace
}  // namespace dcsim
