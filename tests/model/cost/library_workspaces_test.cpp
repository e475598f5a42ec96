#include "model/cost/library_workspaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/product_graph.h"

namespace dcsim {
namespace {

using testing::ElementsAre;

GpuSpec GpuWith(const std::vector<Bytes>& bias_workspaces) {
  GpuSpec gpu;
  gpu.workspaces = {Bytes::MiB(32)};
  gpu.bias_workspaces = bias_workspaces;
  return gpu;
}

TEST(LibraryWorkspacesTest, ProductThatAddsABiasBringsOneMore) {
  EXPECT_THAT(LibraryWorkspaces(GpuWith({Bytes::MiB(1)}), ProductGraph("aten::addmm(bias, x, w)")),
              ElementsAre(Bytes::MiB(32), Bytes::MiB(1)));
}

TEST(LibraryWorkspacesTest, ProductsThatAddNothingOrAMatrixDoNot) {
  for (const char* op : {"aten::mm(x, w)", "aten::addmm(matrix, x, w)"}) {
    EXPECT_THAT(LibraryWorkspaces(GpuWith({Bytes::MiB(1)}), ProductGraph(op)),
                ElementsAre(Bytes::MiB(32)))
        << op;
  }
}

TEST(LibraryWorkspacesTest, GraphWithoutProductsNeedsNone) {
  EXPECT_THAT(LibraryWorkspaces(GpuWith({Bytes::MiB(1)}), ProductGraph("my::op(bias, x, w)")),
              testing::IsEmpty());
}

TEST(LibraryWorkspacesTest, GpuWithoutOneHasNone) {
  EXPECT_THAT(LibraryWorkspaces(GpuWith({}), ProductGraph("aten::addmm(bias, x, w)")),
              ElementsAre(Bytes::MiB(32)));
}

}  // namespace
}  // namespace dcsim
