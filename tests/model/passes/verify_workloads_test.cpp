#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/graph/sharding.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "model/passes/verify.h"
#include "tests/support/row_name.h"
#include "tests/support/source_folder.h"
#include "tests/support/workloads.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

/// Every combination of the options that change a schedule of this stage: what a mixed-radix
/// counter reads.
std::vector<PlanSpec> Grid(int stage) {
  std::vector<PlanSpec> specs;
  std::size_t rest = 0;
  const auto take = [&rest](std::size_t values) {
    const std::size_t value = rest % values;
    rest /= values;
    return value;
  };
  for (std::size_t index = 0; rest == 0; ++index) {
    rest = index;
    PlanSpec spec;
    spec.options.stage = stage;
    spec.options.gradient_accumulation_steps = take(2) == 0 ? 1 : 3;
    spec.options.double_buffer = take(2) == 0;
    spec.options.reduce_bucket = take(2) == 0 ? 500'000'000 : 10'000;
    spec.options.flush_collectives = static_cast<FlushCollectives>(take(2));
    spec.options.communicators = take(2) == 0 ? 1 : 2;
    spec.options.optimizer = static_cast<OptimizerKernels>(take(3));
    if (take(2) == 1) {
      spec.options.gradient_clipping = 1.0;
    }
    if (stage == 3) {
      spec.options.release = static_cast<ReleaseMode>(take(2));
      spec.gather_ahead = take(2) == 0 ? 0 : 8;
      spec.keep_gathered.all = take(2) == 1;
      spec.options.gather_engine = static_cast<Engine>(take(2));
    } else {
      spec.options.reduce_collective = static_cast<ReduceCollective>(take(2));
    }
    const bool mixes_shards =  // a contradiction (resolve.h)
        spec.options.flush_collectives == FlushCollectives::kOnePerBucket &&
        CutByParameter(spec.options);
    if (rest == 0 && !mixes_shards) {
      specs.push_back(spec);
    }
  }
  return specs;
}

TEST(GridTest, HasEveryCombination) {
  // One collective a bucket is for all-reduce: 3 of 4 pairs in stages 1 and 2, 1 of 2 in stage 3.
  EXPECT_EQ(Grid(1).size(), 2U * 2 * 2 * 2 * 3 * 2 * 3);
  EXPECT_EQ(Grid(3).size(), 2U * 2 * 2 * 1 * 2 * 3 * 2 * 2 * 2 * 2 * 2);
}

struct Workload {
  const char* name;
  const char* folder;
  int stage;
  std::size_t stride;  // takes every stride-th combination
};

class VerifyWorkloadTest : public testing::TestWithParam<Workload> {};

TEST_P(VerifyWorkloadTest, EveryCombinationOfOptionsIsRight) {
  const Graph graph = WorkloadGraph(GetParam().folder);
  const auto specs = Grid(GetParam().stage);
  for (std::size_t i = 0; i < specs.size(); i += GetParam().stride) {
    const Schedule schedule = Lower(Resolve(specs[i], graph, 8), graph, nullptr, {});
    ASSERT_THAT(Verify(schedule, graph), testing::IsEmpty()) << "combination " << i;
  }
}

// The small workloads take the whole grid, the large ones every 7th combination of it: 7 shares no
// factor with the numbers of values, so none of these is left out.
INSTANTIATE_TEST_SUITE_P(Committed,
                         VerifyWorkloadTest,
                         testing::Values(Workload{"Mlp1", "mlp-8x4096", 1, 1},
                                         Workload{"Mlp2", "mlp-8x4096", 2, 1},
                                         Workload{"Mlp3", "mlp-8x4096", 3, 1},
                                         Workload{"Tiny1", "tiny-llama", 1, 1},
                                         Workload{"Tiny2", "tiny-llama", 2, 1},
                                         Workload{"Tiny3", "tiny-llama", 3, 1},
                                         Workload{"Llama1b1", "llama-3.2-1b", 1, 7},
                                         Workload{"Llama1b2", "llama-3.2-1b", 2, 7},
                                         Workload{"Llama1b3", "llama-3.2-1b", 3, 7},
                                         Workload{"Llama8b1", "llama-3-8b", 1, 7},
                                         Workload{"Llama8b2", "llama-3-8b", 2, 7},
                                         Workload{"Llama8b3", "llama-3-8b", 3, 7},
                                         Workload{"Qwen1", "qwen3-8b", 1, 7},
                                         Workload{"Qwen2", "qwen3-8b", 2, 7},
                                         Workload{"Qwen3", "qwen3-8b", 3, 7}),
                         RowName());

class VerifyProfiledWorkloadTest : public testing::TestWithParam<std::string> {};

// With the measured footprints, ops allocate and free temporaries and outputs in their own order.
TEST_P(VerifyProfiledWorkloadTest, FootprintsKeepTheScheduleRight) {
  const dcsim::Workload workload = LoadWorkload(SourceFolder() + "/traces/" + GetParam());
  const auto profile = FindProfile(workload, "NVIDIA H200");
  ASSERT_TRUE(profile);
  for (const int stage : {1, 2, 3}) {
    PlanSpec spec;
    spec.options.stage = stage;
    spec.options.gradient_accumulation_steps = 2;
    const Schedule schedule =
        Lower(Resolve(spec, workload.graph, 8), workload.graph, &*profile, {});
    EXPECT_THAT(Verify(schedule, workload.graph), testing::IsEmpty()) << "stage " << stage;
  }
}

std::string LettersOnly(const testing::TestParamInfo<std::string>& workload) {
  std::string name = workload.param;
  std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0; });
  return name;
}

INSTANTIATE_TEST_SUITE_P(Committed,
                         VerifyProfiledWorkloadTest,
                         testing::ValuesIn(ProfiledWorkloadNames()),
                         LettersOnly);

}  // namespace
}  // namespace dcsim
