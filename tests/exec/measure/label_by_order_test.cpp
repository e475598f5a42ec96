// Records by hand: a step of two kernels on stream 1 and one on stream 2.

#include "exec/measure/label_by_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dcsim::exec {
namespace {

using testing::ElementsAre;

KernelRecord Kernel(const char* name, std::uint64_t start_ns, std::uint32_t stream) {
  KernelRecord record;
  record.name = name;
  record.start_ns = start_ns;
  record.end_ns = start_ns + 5;
  record.stream = stream;
  return record;
}

KernelRecord Labelled(const char* name,
                      std::uint64_t start_ns,
                      std::uint32_t stream,
                      std::uint64_t label) {
  KernelRecord record = Kernel(name, start_ns, stream);
  record.label = label;
  return record;
}

std::vector<std::uint64_t> Labels(const std::vector<KernelRecord>& records) {
  std::vector<std::uint64_t> labels;
  labels.reserve(records.size());
  for (const KernelRecord& record : records) {
    labels.push_back(record.label);
  }
  return labels;
}

class LabelByOrderTest : public testing::Test {
 protected:
  const std::vector<KernelRecord> step_ = {Labelled("matmul", 0, 1, 7), Labelled("gather", 2, 2, 8),
                                           Labelled("add", 10, 1, 9)};
};

// The gather of the second step runs before the first step's last kernel, and within a step it may
// be anywhere beside compute: only the order on a stream counts.
TEST_F(LabelByOrderTest, StepsThatOverlapAreToldApartStreamByStream) {
  const auto steps =
      LabelByOrder(step_,
                   {Kernel("matmul", 100, 1), Kernel("gather", 120, 2), Kernel("gather", 130, 2),
                    Kernel("add", 140, 1), Kernel("matmul", 150, 1), Kernel("add", 160, 1)},
                   2);
  ASSERT_TRUE(steps.has_value());
  ASSERT_EQ(steps->size(), 2U);
  EXPECT_THAT(Labels((*steps)[0]), ElementsAre(7, 8, 9));
  EXPECT_THAT(Labels((*steps)[1]), ElementsAre(8, 7, 9));
  EXPECT_EQ((*steps)[1].front().start_ns, 130U);
  EXPECT_EQ((*steps)[1].back().start_ns, 160U);
}

TEST_F(LabelByOrderTest, KernelsWithoutATaskStayWithout) {
  const std::vector<KernelRecord> step = {Kernel("fill", 0, 1), Labelled("add", 10, 1, 9)};
  const auto steps = LabelByOrder(step, {Kernel("fill", 100, 1), Kernel("add", 110, 1)}, 1);
  ASSERT_TRUE(steps.has_value());
  EXPECT_THAT(Labels(steps->front()), ElementsAre(KernelRecord::kNoLabel, 9));
}

TEST_F(LabelByOrderTest, AnotherKernelInItsPlaceIsNoStepOfTheSchedule) {
  EXPECT_FALSE(LabelByOrder(step_,
                            {Kernel("matmul", 0, 1), Kernel("gather", 2, 2), Kernel("split", 9, 1)},
                            1)
                   .has_value());
}

TEST_F(LabelByOrderTest, AKernelTooFewOrTooManyIsNoStepOfTheSchedule) {
  EXPECT_FALSE(
      LabelByOrder(step_, {Kernel("matmul", 0, 1), Kernel("gather", 2, 2)}, 1).has_value());
  EXPECT_FALSE(LabelByOrder(step_,
                            {Kernel("matmul", 0, 1), Kernel("gather", 2, 2), Kernel("add", 9, 1),
                             Kernel("matmul", 20, 1)},
                            1)
                   .has_value());
}

// As many as two steps have, but three gathers and one product less.
TEST_F(LabelByOrderTest, AStreamWithTooManyIsNoStepOfTheSchedule) {
  EXPECT_FALSE(
      LabelByOrder(step_,
                   {Kernel("matmul", 0, 1), Kernel("gather", 2, 2), Kernel("add", 9, 1),
                    Kernel("gather", 20, 2), Kernel("gather", 30, 2), Kernel("matmul", 40, 1)},
                   2)
          .has_value());
}

TEST_F(LabelByOrderTest, AStreamThatTheStepDoesNotUseIsNoStepOfTheSchedule) {
  EXPECT_FALSE(
      LabelByOrder(step_, {Kernel("matmul", 0, 1), Kernel("gather", 2, 3), Kernel("add", 9, 1)}, 1)
          .has_value());
}

}  // namespace
}  // namespace dcsim::exec
