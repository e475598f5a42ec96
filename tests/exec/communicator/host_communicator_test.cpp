#include "exec/communicator/host_communicator.h"

#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "model/base/error.h"
#include "tests/exec/support/host_training.h"

namespace dcsim::exec {
namespace {

using testing::Each;
using testing::ElementsAre;

std::vector<double> Elements(const at::Tensor& tensor) {
  const at::Tensor wide = tensor.to(at::kDouble).contiguous();
  return {wide.const_data_ptr<double>(), wide.const_data_ptr<double>() + wide.numel()};
}

/// What `run` returns on each of three ranks.
std::vector<std::vector<double>> OnThreeRanks(const std::function<at::Tensor(Communicator&)>& run) {
  std::vector<std::vector<double>> results(3);
  RunRanks(3, [&](Communicator& communicator) {
    results[static_cast<std::size_t>(communicator.rank())] = Elements(run(communicator));
  });
  return results;
}

TEST(HostCommunicatorTest, GathersShardsByRank) {
  const auto gathered = OnThreeRanks([](Communicator& communicator) {
    const double rank = communicator.rank();
    at::Tensor all = at::zeros({6}, at::kFloat);
    communicator.AllGather(at::tensor({10 * rank, 10 * rank + 1}).to(at::kFloat), all);
    return all;
  });
  EXPECT_THAT(gathered, Each(ElementsAre(0, 1, 10, 11, 20, 21)));
}

// ZeRO-1 and 2 gather updated weights where they lie.
TEST(HostCommunicatorTest, GathersInPlace) {
  const auto gathered = OnThreeRanks([](Communicator& communicator) {
    const std::int64_t rank = communicator.rank();
    at::Tensor all = at::full({6}, -1.0, at::kFloat);
    const at::Tensor own = all.narrow(0, 2 * rank, 2);
    own.fill_(static_cast<double>(rank));
    communicator.AllGather(own, all);
    return all;
  });
  EXPECT_THAT(gathered, Each(ElementsAre(0, 0, 1, 1, 2, 2)));
}

// Rank r has (r + 1) * [0 1 2 3 4 5]; the sum is 6 * [0 1 2 3 4 5], of which each gets two.
TEST(HostCommunicatorTest, ScattersSums) {
  const auto scattered = OnThreeRanks([](Communicator& communicator) {
    at::Tensor shard = at::zeros({2}, at::kFloat);
    communicator.ReduceScatter(at::arange(6, at::kFloat).mul(communicator.rank() + 1), shard);
    return shard;
  });
  EXPECT_THAT(scattered, ElementsAre(ElementsAre(0, 6), ElementsAre(12, 18), ElementsAre(24, 30)));
}

TEST(HostCommunicatorTest, ScattersIntoItsOwnPart) {
  const auto wholes = OnThreeRanks([](Communicator& communicator) {
    at::Tensor whole = at::full({3}, 1.0, at::kFloat);
    communicator.ReduceScatter(whole, whole.narrow(0, communicator.rank(), 1));
    return whole;
  });
  EXPECT_THAT(wholes,
              ElementsAre(ElementsAre(3, 1, 1), ElementsAre(1, 3, 1), ElementsAre(1, 1, 3)));
}

TEST(HostCommunicatorTest, ReducesToAllRanks) {
  const auto sums = OnThreeRanks([](Communicator& communicator) {
    at::Tensor tensor = at::full({2}, communicator.rank() + 1.0, at::kFloat);
    communicator.AllReduce(tensor);
    return tensor;
  });
  EXPECT_THAT(sums, Each(ElementsAre(6, 6)));
}

// Bfloat16 has 8 bits: 256 + 1 rounds to 256, and so would (256 + 1) + 1. The sum in float32, 258,
// is a bfloat16.
TEST(HostCommunicatorTest, NarrowFloatsAreSummedInFloat32) {
  const auto sums = OnThreeRanks([](Communicator& communicator) {
    at::Tensor tensor = at::full({1}, communicator.rank() == 0 ? 256.0 : 1.0, at::kBFloat16);
    communicator.AllReduce(tensor);
    return tensor;
  });
  EXPECT_THAT(sums, Each(ElementsAre(258)));
}

// 1e8 + 1 is 1e8 in float32, so the order of ranks gives (1e8 - 1e8) + 1 = 1, others 0.
TEST(HostCommunicatorTest, SumsAreMadeInRankOrder) {
  const auto sums = OnThreeRanks([](Communicator& communicator) {
    const double terms[] = {1e8, -1e8, 1};
    at::Tensor tensor = at::full({1}, terms[communicator.rank()], at::kFloat);
    communicator.AllReduce(tensor);
    return tensor;
  });
  EXPECT_THAT(sums, Each(ElementsAre(1)));
}

TEST(HostCommunicatorTest, CallsFollowEachOther) {
  const auto sums = OnThreeRanks([](Communicator& communicator) {
    at::Tensor tensor = at::full({1}, 1.0, at::kFloat);
    for (int i = 0; i < 200; ++i) {
      communicator.AllReduce(tensor.fill_(i));
    }
    return tensor;
  });
  EXPECT_THAT(sums, Each(ElementsAre(3 * 199)));
}

TEST(HostCommunicatorTest, KeepsNoTensor) {
  RunRanks(2, [](Communicator& communicator) {
    const at::Tensor tensor = at::full({1}, 1.0, at::kFloat);
    communicator.AllReduce(tensor);
    EXPECT_EQ(tensor.use_count(), 1U);
  });
}

TEST(HostCommunicatorTest, FailingRanksWakeTheOthers) {
  std::mutex mutex;
  std::vector<std::string> messages;
  RunRanks(3, [&](Communicator& communicator) {
    if (communicator.rank() == 2) {
      communicator.Abort("rank 2: disk on fire");
      communicator.Abort("rank 2: later");
      return;
    }
    for (int call = 0; call < 2; ++call) {  // also whoever comes later
      try {
        communicator.AllReduce(at::zeros({1}, at::kFloat));
      } catch (const SystemError& error) {
        const std::lock_guard<std::mutex> lock(mutex);
        messages.emplace_back(error.what());
      }
    }
  });
  std::sort(messages.begin(), messages.end());
  const std::string zero = "rank 0: collective stopped: rank 2: disk on fire";
  const std::string one = "rank 1: collective stopped: rank 2: disk on fire";
  EXPECT_THAT(messages, ElementsAre(zero, zero, one, one));
}

}  // namespace
}  // namespace dcsim::exec
