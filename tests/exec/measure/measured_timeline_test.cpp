// Kernel records by hand, on a schedule of two layers, ZeRO-3 on two ranks.

#include "exec/measure/measured_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/schedule_edit.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim::exec {
namespace {

using testing::ElementsAre;
using testing::Pair;

KernelRecord Kernel(std::uint64_t start_ns, std::uint64_t end_ns, TaskId task) {
  KernelRecord record;
  record.start_ns = start_ns;
  record.end_ns = end_ns;
  record.label = task.is_none() ? KernelRecord::kNoLabel : task.index();
  return record;
}

class MeasuredTimelineTest : public testing::Test {
 protected:
  const Schedule schedule_ = LowerTiny(TinySpec(3), TwoLayers());
  const TaskId gather_ = NthTask(schedule_, TaskKind::kAllGather);
  const TaskId next_gather_ = NthTask(schedule_, TaskKind::kAllGather, 1);
  const TaskId compute_ = NthTask(schedule_, TaskKind::kCompute);
};

// A matrix product of two kernels, one labelled by no task in between, after a gather; the step
// before ended at 1000 ns.
TEST_F(MeasuredTimelineTest, KernelsOfATaskAreOneSpan) {
  const Timeline timeline =
      TimelineOf({Kernel(1100, 1300, gather_), Kernel(1300, 1400, compute_),
                  Kernel(1400, 1600, TaskId::None()), Kernel(1650, 1700, compute_)},
                 schedule_, 1000, /*rank=*/1);
  EXPECT_EQ(timeline.origin, Origin::kMeasured);
  EXPECT_EQ(timeline.step_time, Duration::FromNs(700));
  ASSERT_EQ(timeline.spans.size(), 2U);
  const Span& gather = timeline.spans[0];
  EXPECT_EQ(gather.task, gather_);
  EXPECT_EQ(gather.rank, 1);
  EXPECT_EQ(gather.stream, static_cast<std::uint8_t>(StreamRole::kGather));
  const Span& compute = timeline.spans[1];
  EXPECT_EQ(compute.task, compute_);
  EXPECT_EQ(compute.stream, static_cast<std::uint8_t>(StreamRole::kCompute));
  EXPECT_EQ(compute.start, SimTime::FromNs(300));
  EXPECT_EQ(compute.end, SimTime::FromNs(700));
}

TEST_F(MeasuredTimelineTest, SpansAreSortedByTheirEnds) {
  const Timeline timeline =
      TimelineOf({Kernel(0, 500, gather_), Kernel(100, 200, compute_)}, schedule_, 0, 0);
  ASSERT_EQ(timeline.spans.size(), 2U);
  EXPECT_EQ(timeline.spans[0].task, compute_);
  EXPECT_EQ(timeline.spans[1].task, gather_);
}

TEST_F(MeasuredTimelineTest, CollectivesAndComputeAreApart) {
  const std::vector<KernelRecord> records = {Kernel(0, 100, gather_), Kernel(50, 120, compute_),
                                             Kernel(90, 200, next_gather_),
                                             Kernel(300, 400, TaskId::None())};
  EXPECT_THAT(CollectiveIntervals(records, schedule_), ElementsAre(Pair(0, 200)));
  EXPECT_THAT(ComputeIntervals(records, schedule_), ElementsAre(Pair(50, 120)));
}

// Two steps of a gather and a product each. The second step begins where the first one's product
// ends, at 1200 ns. Its gather, 1150 to 1400, is covered by that product until 1200 and exposed for
// the 100 ns until its own product begins: what runs of other steps hides communication, too.
TEST_F(MeasuredTimelineTest, CommunicationHidesBehindTheStepBefore) {
  const StepTraces traces =
      MeanTraces({{Kernel(900, 1000, gather_), Kernel(1000, 1200, compute_)},
                  {Kernel(1150, 1400, next_gather_), Kernel(1300, 1700, compute_)}},
                 /*before=*/1, schedule_);
  EXPECT_EQ(traces.last_start_ns, 1200U);
  EXPECT_EQ(traces.step_time, Duration::FromNs(500));
  EXPECT_EQ(traces.compute, Duration::FromNs(400));
  EXPECT_EQ(traces.exposed_communication, Duration::FromNs(100));
  EXPECT_EQ(traces.busy[static_cast<std::size_t>(CollectiveKind::kAllGather)],
            Duration::FromNs(250));
}

TEST_F(MeasuredTimelineTest, TracesAreMeansOfTheirSteps) {
  const StepTraces traces = MeanTraces({{Kernel(0, 100, gather_), Kernel(100, 200, compute_)},
                                        {Kernel(250, 300, gather_), Kernel(300, 500, compute_)},
                                        {Kernel(500, 700, gather_), Kernel(700, 800, compute_)}},
                                       /*before=*/1, schedule_);
  EXPECT_EQ(traces.last_start_ns, 500U);
  EXPECT_EQ(traces.step_time, Duration::FromNs(300));
  EXPECT_EQ(traces.compute, Duration::FromNs(150));
  EXPECT_EQ(traces.exposed_communication, Duration::FromNs(125));
}

// Of a single step it is not known where the one before ended.
TEST_F(MeasuredTimelineTest, AStepByItselfBeginsWithItsFirstKernel) {
  const StepTraces traces =
      MeanTraces({{Kernel(50, 100, gather_), Kernel(120, 200, compute_)}}, 0, schedule_);
  EXPECT_EQ(traces.last_start_ns, 50U);
  EXPECT_EQ(traces.step_time, Duration::FromNs(150));
  EXPECT_EQ(traces.exposed_communication, Duration::FromNs(50));
}

}  // namespace
}  // namespace dcsim::exec
