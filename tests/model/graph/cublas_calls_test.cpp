#include "model/graph/cublas_calls.h"

#include <gtest/gtest.h>

#include "tests/support/product_graph.h"

namespace dcsim {
namespace {

TEST(CublasCallsTest, ProductsCallItAndSumsDoNot) {
  EXPECT_TRUE(CallsCublas(ProductGraph("aten::mm(x, w)"), OpId(0)));
  EXPECT_TRUE(CallsCublas(ProductGraph("aten::addmm(matrix, x, w)"), OpId(0)));
  EXPECT_FALSE(CallsCublas(ProductGraph("aten::mm(x, w)"), OpId(1)));
}

// Grouped products are CUTLASS's, convolutions cuDNN's.
TEST(CublasCallsTest, ProductsOfOtherLibrariesDoNot) {
  EXPECT_FALSE(CallsCublas(ProductGraph("aten::_grouped_mm(x, w)"), OpId(0)));
  EXPECT_FALSE(CallsCublas(ProductGraph("aten::convolution(x, w)"), OpId(0)));
}

TEST(CublasCallsTest, OnlyAVectorIsABias) {
  EXPECT_TRUE(AddsBias(ProductGraph("aten::addmm(bias, x, w)"), OpId(0)));
  EXPECT_FALSE(AddsBias(ProductGraph("aten::addmm(matrix, x, w)"), OpId(0)));
  EXPECT_FALSE(AddsBias(ProductGraph("aten::mm(x, w)"), OpId(0)));
  EXPECT_FALSE(AddsBias(ProductGraph("aten::addmm()"), OpId(0)));
}

}  // namespace
}  // namespace dcsim
