#include "model/cost/profiled_launch.h"

#include <gtest/gtest.h>

#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

OpProfile Taken(std::size_t op, Duration host, bool kernel = true) {
  OpProfile entry;
  entry.op = OpId(op);
  entry.host_time = host;
  if (kernel) {
    entry.kernels = {0};
  }
  return entry;
}

/// The first op of TwoLayers with this operator.
std::size_t Find(const Graph& graph, const std::string& target) {
  std::size_t op = 0;
  while (graph.target(OpId(op)) != target) {
    ++op;
  }
  return op;
}

// A product takes 1.9 elementwise ops.
TEST(ProfiledLaunchTest, IsTheMedianOverWhatKindsOfOpsTake) {
  const Graph graph = TwoLayers();
  const std::size_t product = Find(graph, "aten::mm");
  Profile profile;
  profile.ops = {Taken(product, Duration::FromUs(19)), Taken(product, Duration::FromUs(38)),
                 Taken(product, Duration::FromUs(95))};
  EXPECT_EQ(ProfiledLaunch(graph, profile), Duration::FromUs(20));
}

TEST(ProfiledLaunchTest, OpsWithoutAKernelDoNotCount) {
  const Graph graph = TwoLayers();
  const std::size_t product = Find(graph, "aten::mm");
  Profile profile;
  profile.ops = {Taken(product, Duration::FromUs(19)),
                 Taken(product, Duration::FromUs(1), /*kernel=*/false)};
  EXPECT_EQ(ProfiledLaunch(graph, profile), Duration::FromUs(10));
  profile.ops.erase(profile.ops.begin());
  EXPECT_EQ(ProfiledLaunch(graph, profile), Duration());
}

}  // namespace
}  // namespace dcsim
