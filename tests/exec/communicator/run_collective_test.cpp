#include "exec/communicator/run_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/full.h>

#include "tests/exec/support/host_training.h"

namespace dcsim::exec {
namespace {

using testing::ElementsAre;

/// Elements of `whole` [4] and `shard` [2] on the second of two ranks. Rank r brings a whole of
/// r + 1 and a shard of 10 * (r + 1).
std::vector<float> AfterCollective(CollectiveKind kind) {
  std::vector<float> elements;
  RunRanks(2, [&](Communicator& communicator) {
    const double own = communicator.rank() + 1.0;
    const at::Tensor whole = at::full({4}, own, at::kFloat);
    const at::Tensor shard = at::full({2}, 10 * own, at::kFloat);
    RunCollective(communicator, kind, whole, shard);
    if (communicator.rank() == 1) {
      elements.assign(whole.const_data_ptr<float>(), whole.const_data_ptr<float>() + 4);
      elements.insert(elements.end(), shard.const_data_ptr<float>(),
                      shard.const_data_ptr<float>() + 2);
    }
  });
  return elements;
}

TEST(RunCollectiveTest, GathersShardsIntoTheWhole) {
  EXPECT_THAT(AfterCollective(CollectiveKind::kAllGather), ElementsAre(10, 10, 20, 20, 20, 20));
}

TEST(RunCollectiveTest, ScattersTheSumOfWholesIntoShards) {
  EXPECT_THAT(AfterCollective(CollectiveKind::kReduceScatter), ElementsAre(2, 2, 2, 2, 3, 3));
}

TEST(RunCollectiveTest, ReducesTheWhole) {
  EXPECT_THAT(AfterCollective(CollectiveKind::kAllReduce), ElementsAre(3, 3, 3, 3, 20, 20));
}

}  // namespace
}  // namespace dcsim::exec
