#include "model/cost/library_workspaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"

namespace dcsim {
namespace {

using testing::ElementsAre;

GpuSpec GpuWith(Bytes bias_workspace) {
  GpuSpec gpu;
  gpu.workspaces = {Bytes::MiB(32)};
  gpu.bias_workspace = bias_workspace;
  return gpu;
}

/// One product of x and w, with what `op` says.
Graph Product(const std::string& op) {
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

TEST(LibraryWorkspacesTest, ProductThatAddsABiasBringsOneMore) {
  EXPECT_THAT(LibraryWorkspaces(GpuWith(Bytes::MiB(1)), Product("aten::addmm(bias, x, w)")),
              ElementsAre(Bytes::MiB(32), Bytes::MiB(1)));
}

TEST(LibraryWorkspacesTest, ProductsThatAddNothingOrAMatrixDoNot) {
  for (const char* op : {"aten::mm(x, w)", "aten::addmm(matrix, x, w)"}) {
    EXPECT_THAT(LibraryWorkspaces(GpuWith(Bytes::MiB(1)), Product(op)), ElementsAre(Bytes::MiB(32)))
        << op;
  }
}

TEST(LibraryWorkspacesTest, GraphWithoutProductsNeedsNone) {
  EXPECT_THAT(LibraryWorkspaces(GpuWith(Bytes::MiB(1)), Product("my::op(bias, x, w)")),
              testing::IsEmpty());
}

TEST(LibraryWorkspacesTest, GpuWithoutOneHasNone) {
  EXPECT_THAT(LibraryWorkspaces(GpuWith(Bytes(0)), Product("aten::addmm(bias, x, w)")),
              ElementsAre(Bytes::MiB(32)));
}

}  // namespace
}  // namespace dcsim
