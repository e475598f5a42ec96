#include "tools/views/beside_text.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/analysis/step_clock.h"
#include "tests/tools/views/predicted_step.h"

namespace dcsim {
namespace {

using testing::HasSubstr;

/// A trace whose one step of 100 us has a product, a collective that outlasts it by 10 us, and a
/// copy beside them.
KinetoTrace HandTrace() {
  KinetoTrace trace;
  trace.file = "step.json";
  trace.names = {"nvjet_sm90", "ncclDevKernel_AllGather_RING_LL", "Memcpy DtoD (Device -> Device)"};
  const auto us = [](std::int64_t time) { return SimTime::FromNs(time * 1000); };
  const auto event = [&](std::uint32_t name, TracedKind kind, int stream, int start, int end) {
    return TracedEvent{name, kind, 0, stream, 0, us(start), us(end)};
  };
  TracedStep step;
  step.number = 3;
  step.start = us(0);
  step.end = us(100);
  step.events = {event(0, TracedKind::kKernel, 7, 0, 40), event(1, TracedKind::kKernel, 20, 20, 50),
                 event(2, TracedKind::kCopy, 21, 60, 70)};
  trace.steps = {step};
  return trace;
}

Beside BesideStack(const KinetoTrace& trace) {
  const PredictedStep step = PredictStack(2);
  const PredictionInputs inputs{step.graph, nullptr, step.cluster};
  const ClockedCosts clocked = CostsAtClock(step.schedule, inputs);
  const auto kernels =
      FindKernelSpans(step.schedule, clocked.costs, OptionsFor(step.schedule, inputs));
  return CompareBeside(trace, {step.schedule, step.graph, kernels, clocked.costs, step.result});
}

Duration MeasuredOf(const Beside& beside, WorkClass work_class) {
  return beside.measured[static_cast<std::size_t>(work_class)].time;
}

TEST(BesideTest, MeasuredTimesAreThoseOfTheTrace) {
  const Beside beside = BesideStack(HandTrace());
  EXPECT_EQ(MeasuredOf(beside, WorkClass::kProducts), Duration::FromUs(40));
  EXPECT_EQ(MeasuredOf(beside, WorkClass::kCollectives), Duration::FromUs(30));
  EXPECT_EQ(MeasuredOf(beside, WorkClass::kCopies), Duration::FromUs(10));
  EXPECT_EQ(beside.step.measured, Duration::FromUs(100));
  EXPECT_EQ(beside.exposed.measured, Duration::FromUs(10));  // 40 to 50
  EXPECT_EQ(beside.idle.measured, Duration::FromUs(40));     // 50 to 60, 70 to 100
}

TEST(BesideTest, SeveralStepsAreTheirMean) {
  KinetoTrace trace = HandTrace();
  trace.steps.push_back(trace.steps.front());
  trace.steps.back().number = 4;
  trace.steps.back().events.pop_back();
  const Beside beside = BesideStack(trace);
  EXPECT_EQ(MeasuredOf(beside, WorkClass::kProducts), Duration::FromUs(40));
  EXPECT_EQ(MeasuredOf(beside, WorkClass::kCopies), Duration::FromUs(5));
  EXPECT_EQ(beside.measured[static_cast<std::size_t>(WorkClass::kCopies)].launches, 0.5);
  EXPECT_EQ(beside.idle.measured, Duration::FromUs(45));
  EXPECT_THAT(PrintBesideText(beside), HasSubstr("beside step.json, steps 3 to 4"));
}

// Alone, kernels are no longer than the tasks that hold them, and all of the step is busy or idle.
TEST(BesideTest, PredictedClassesAreOfTheTimeline) {
  const PredictedStep step = PredictStack(2);
  const Beside beside = BesideStack(HandTrace());
  EXPECT_EQ(beside.step.predicted, step.result.step_time);
  Duration of_classes;
  for (const WorkAmount& amount : beside.predicted) {
    of_classes += amount.time;
  }
  Duration of_spans;
  for (const Span& span : step.timeline.spans) {
    of_spans += span.end - span.start;
  }
  EXPECT_GT(of_classes, Duration());
  EXPECT_LE(of_classes, of_spans);
  EXPECT_LE(beside.idle.predicted, step.result.step_time);
  EXPECT_GE(beside.idle.predicted + of_classes, step.result.step_time);
}

TEST(BesideTest, CollectivesArePairedByKind) {
  const Beside beside = BesideStack(HandTrace());
  const auto gather = std::find_if(beside.tasks.begin(), beside.tasks.end(),
                                   [](const BesideTask& t) { return t.kernel == "all_gather"; });
  ASSERT_NE(gather, beside.tasks.end());
  EXPECT_EQ(gather->task, "all_gather");
  EXPECT_EQ(gather->measured.launches, 1);
  EXPECT_GT(gather->predicted.launches, 1);
}

TEST(BesideTest, TasksAddUpToTheirClasses) {
  const Beside beside = BesideStack(HandTrace());
  std::array<Duration, kWorkClasses> sums;
  for (const BesideTask& task : beside.tasks) {
    EXPECT_NE(task.work_class, WorkClass::kProducts);
    sums[static_cast<std::size_t>(task.work_class)] += task.predicted.time;
  }
  for (std::size_t i = 1; i < kWorkClasses; ++i) {
    EXPECT_EQ(sums[i], beside.predicted[i].time) << i;
  }
}

TEST(BesideTest, WhatOneSideLacksHasADash) {
  const std::string text = PrintBesideText(BesideStack(HandTrace()));
  EXPECT_THAT(text, HasSubstr("matrix products"));
  EXPECT_THAT(text, HasSubstr("longest tasks, without products"));
  EXPECT_THAT(text, HasSubstr(" -"));
}

TEST(BesideTest, TheDocumentHoldsTheResult) {
  const PredictedStep step = PredictStack(2);
  const Json document = PrintBeside(BesideStack(HandTrace()), step.result);
  EXPECT_EQ(document["format"], "dc-beside/1");
  EXPECT_EQ(document["steps"], Json::array({3}));
  EXPECT_EQ(document["classes"].size(), kWorkClasses);
  EXPECT_EQ(document["idle_ns"]["measured"], 40'000);
  EXPECT_EQ(document["result"]["format"], "dc-result/1");
}

}  // namespace
}  // namespace dcsim
