// Steps that run out of memory: what a result says of the moment at which they do.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/passes/resolve.h"
#include "sim/analysis/peak_holders.h"
#include "sim/analysis/predict.h"
#include "tests/sim/test_cluster.h"
#include "tests/support/workloads.h"

namespace dcsim {
namespace {

/// What is alive in the first step, by nothing but the schedule's allocator calls.
class FirstStep {
 public:
  explicit FirstStep(const Schedule& schedule)
      : schedule_(schedule),
        alive_(schedule.buffers().size()) {
    for (const BufferId id : schedule.residents()) {
      alive_[id.index()] = schedule.buffer(id).first_user.is_none();
    }
  }

  /// The calls of a task, with those of residents that it is the first to use.
  std::vector<MemoryStep> CallsOf(TaskId task) const {
    std::vector<MemoryStep> calls(schedule_.memory(task).begin(), schedule_.memory(task).end());
    auto place = calls.begin() + (calls.empty() || calls.front().frees ? 0 : 1);
    for (const BufferId id : schedule_.residents()) {
      if (schedule_.buffer(id).first_user == task) {
        place = calls.insert(place, {id, false}) + 1;
      }
    }
    return calls;
  }

  void Make(const MemoryStep& call) {
    if (call.frees && schedule_.buffer(call.buffer).carried) {
      return;  // of the step before
    }
    alive_[call.buffer.index()] = !call.frees;
  }

  /// Up to the call of `task` that asks for `buffer`.
  std::vector<BufferId> AliveAt(TaskId task, BufferId buffer) {
    for (std::size_t i = 0; i <= task.index(); ++i) {
      for (const MemoryStep& call : CallsOf(TaskId(i))) {
        if (i == task.index() && !call.frees && call.buffer == buffer) {
          return Alive();
        }
        Make(call);
      }
    }
    ADD_FAILURE() << "the task does not ask for the buffer";
    return {};
  }

 private:
  std::vector<BufferId> Alive() const {
    std::vector<BufferId> ids;
    for (std::size_t i = 0; i < alive_.size(); ++i) {
      if (alive_[i]) {
        ids.emplace_back(i);
      }
    }
    return ids;
  }

  const Schedule& schedule_;
  std::vector<bool> alive_;
};

struct StoppedCase {
  std::string workload;
  int stage;
};

class PredictStopTest : public testing::TestWithParam<StoppedCase> {
 protected:
  PredictStopTest() : graph_(WorkloadGraph(GetParam().workload)) {
    PlanSpec spec;
    spec.options.stage = GetParam().stage;
    plan_ = Resolve(spec, graph_, 4);
    cluster_.gpu.outside_allocator = Bytes(0);
  }

  Schedule Lowered() const { return LowerFor(plan_, inputs()); }
  PredictionInputs inputs() const { return {graph_, nullptr, cluster_}; }
  Prediction PredictWith(Bytes memory, bool keep_timeline = false) {
    cluster_.gpu.memory = memory;
    return Predict(Lowered(), plan_, inputs(), keep_timeline);
  }
  /// Limits of a `parts`-th, two, ... of what the plan reserves.
  std::vector<Bytes> Limits(std::int64_t parts) {
    const Bytes all = PredictWith(Bytes::GiB(500)).result.peak_reserved;
    std::vector<Bytes> limits;
    for (std::int64_t i = 1; i < parts; ++i) {
      limits.emplace_back(all.count() / parts * i);
    }
    return limits;
  }

  Graph graph_;
  Cluster cluster_ = HandCluster();
  Plan plan_;
};

TEST_P(PredictStopTest, ClassesAreThoseAtTheFailingRequestAndAddUp) {
  const Schedule schedule = Lowered();
  std::size_t in_the_step = 0;
  for (const Bytes limit : Limits(10)) {
    SCOPED_TRACE(PrintBytes(limit));
    const Prediction prediction = PredictWith(limit);
    const Result& result = prediction.result;
    ASSERT_EQ(result.outcome, "out_of_memory");
    EXPECT_EQ(result.verdict, "does_not_fit");
    EXPECT_EQ(SumOf(result.peak_classes), result.peak_live);
    EXPECT_LE(result.peak_live, result.peak_allocated);
    EXPECT_LE(result.peak_allocated, result.peak_reserved);
    EXPECT_LE(result.peak_reserved, result.capacity);
    // The driver has no segment for it: one of 20 MiB or, from 10 MiB on, of its own size.
    EXPECT_GT(result.peak_reserved + result.stop->requested + Bytes::MiB(20), result.capacity);
    EXPECT_EQ(result.stop->requested, schedule.buffer(prediction.stop->buffer).bytes);
    EXPECT_TRUE(std::is_sorted(prediction.stop->alive.begin(), prediction.stop->alive.end()));
    if (!prediction.stop->task.is_none() && prediction.stop->step == 0) {
      ++in_the_step;
      EXPECT_EQ(prediction.stop->alive,
                FirstStep(schedule).AliveAt(prediction.stop->task, prediction.stop->buffer));
    }
  }
  EXPECT_GT(in_the_step, 0U);
}

TEST_P(PredictStopTest, WhatIsNeededBeforeTheFirstStepIsSaid) {
  Bytes needed;
  const Schedule schedule = Lowered();
  for (const BufferId id : schedule.residents()) {
    const Buffer& buffer = schedule.buffer(id);
    needed += buffer.first_user.is_none() ? buffer.bytes : Bytes(0);
  }
  const Result below = PredictWith(needed + kDriverReserve - Bytes(1)).result;
  ASSERT_EQ(below.outcome, "out_of_memory");
  EXPECT_EQ(SumOf(below.stop->needed), needed);
  const Result above = PredictWith(needed + kDriverReserve + Bytes::MiB(128)).result;
  ASSERT_EQ(above.outcome, "out_of_memory");
  EXPECT_TRUE(above.stop->needed.empty());
}

TEST_P(PredictStopTest, TimelineEndsWithTheFailingRequest) {
  const Prediction prediction = PredictWith(Limits(3).back(), /*keep_timeline=*/true);
  ASSERT_TRUE(prediction.timeline && prediction.timeline->stop);
  const Timeline& timeline = *prediction.timeline;
  EXPECT_EQ(timeline.stop->task, prediction.stop->task);
  EXPECT_EQ(timeline.stop->time, SimTime() + timeline.step_time);
  ASSERT_FALSE(timeline.spans.empty());
  for (const Span& span : timeline.spans) {
    EXPECT_LE(span.end, timeline.stop->time);
    EXPECT_LT(span.task, timeline.stop->task);
  }
  ASSERT_FALSE(timeline.memory.empty());
  EXPECT_EQ(timeline.memory.back().task, timeline.stop->task);
  EXPECT_EQ(timeline.memory.back().live, prediction.result.peak_live);
  EXPECT_EQ(timeline.host.back().task, timeline.stop->task);
}

std::string TestName(const testing::TestParamInfo<StoppedCase>& info) {
  return info.param.workload.substr(0, 3) + "_zero" + std::to_string(info.param.stage);
}

INSTANTIATE_TEST_SUITE_P(Workloads,
                         PredictStopTest,
                         testing::Values(StoppedCase{"mlp-8x4096", 1},
                                         StoppedCase{"mlp-8x4096", 3},
                                         StoppedCase{"llama-3.2-1b", 2},
                                         StoppedCase{"llama-3.2-1b", 3}),
                         TestName);

}  // namespace
}  // namespace dcsim
