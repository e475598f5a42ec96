#include "tools/views/step_detail.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/views/predicted_step.h"

namespace dcsim {
namespace {

TEST(StepDetailTest, EveryTaskWithALengthIsOnItsStream) {
  const PredictedStep step = PredictStack(2);
  const Json detail = PrintStepDetail(step.timeline, step.schedule, step.graph);
  std::size_t drawn = 0;
  for (const auto& [name, stream] : detail["streams"].items()) {
    for (const char* column : {"end_ns", "kind", "label"}) {
      EXPECT_EQ(stream[column].size(), stream["start_ns"].size()) << name;
    }
    if (name != "host") {
      drawn += stream["start_ns"].size();
    }
  }
  std::size_t expected = 0;
  for (const Span& span : step.timeline.spans) {
    expected += span.start == span.end ? 0U : 1U;
  }
  EXPECT_EQ(drawn, expected);
  EXPECT_EQ(detail["step_time_ns"], step.result.step_time.ns());
}

TEST(StepDetailTest, ExposedTimesAddUpToTheResults) {
  const PredictedStep step = PredictStack(2);
  const Json detail = PrintStepDetail(step.timeline, step.schedule, step.graph);
  std::int64_t sum = 0;
  for (const auto& [kind, time] : detail["exposed_ns"].items()) {
    sum += time.get<std::int64_t>();
  }
  EXPECT_EQ(sum, step.result.exposed_communication.ns());
  EXPECT_GT(sum, 0);
}

TEST(StepDetailTest, ClassesAddUpToWhatIsAlive) {
  const PredictedStep step = PredictStack(3);
  const Json memory = PrintStepDetail(step.timeline, step.schedule, step.graph)["memory"];
  ASSERT_EQ(memory["time_ns"].size(), step.timeline.memory.size());
  ASSERT_FALSE(step.timeline.memory.empty());
  for (std::size_t i = 0; i < step.timeline.memory.size(); ++i) {
    std::int64_t live = 0;
    for (const auto& [name, column] : memory["live_bytes"].items()) {
      live += column[i].get<std::int64_t>();
    }
    EXPECT_EQ(live, step.timeline.memory[i].live.count()) << i;
    EXPECT_EQ(memory["reserved_bytes"][i], step.timeline.memory[i].reserved.count());
  }
}

/// `count` tasks of the compute stream, back to back, and a sample of memory after each.
Timeline LongTimeline(const PredictedStep& step, std::size_t count) {
  Timeline timeline;
  Span span = step.timeline.spans.front();
  MemorySample sample = step.timeline.memory.back();
  for (std::size_t i = 0; i < count; ++i) {
    span.start = SimTime::FromNs(static_cast<std::int64_t>(i * 10));
    span.end = span.start + Duration::FromNs(i == count / 2 ? 10 : 9);
    timeline.spans.push_back(span);
    sample.time = span.end;
    sample.reserved = Bytes(i == count / 2 ? 999 : 5);
    timeline.memory.push_back(sample);
  }
  timeline.step_time = span.end - SimTime();
  return timeline;
}

TEST(StepDetailTest, LongTimelinesAreMergedAndLoseNothing) {
  constexpr std::size_t kCount = 100000;
  const PredictedStep step = PredictStack(2);
  const Timeline timeline = LongTimeline(step, kCount);
  const Json detail = PrintStepDetail(timeline, step.schedule, step.graph);
  const Json& stream = detail["streams"].front();
  std::size_t tasks = 0;
  for (const auto& of_bar : stream["tasks"]) {
    tasks += of_bar.get<std::size_t>();
  }
  EXPECT_EQ(tasks, kCount);
  EXPECT_LE(stream["start_ns"].size(), 8000U);
  EXPECT_GE(stream["start_ns"].size(), 2000U);
  EXPECT_EQ(stream["end_ns"].back(), timeline.spans.back().end.ns());

  const Json& reserved = detail["memory"]["reserved_bytes"];
  EXPECT_LE(reserved.size(), 2002U);
  EXPECT_EQ(std::count(reserved.begin(), reserved.end(), 999), 1);  // the peak
  EXPECT_LT(detail.dump().size(), 3000000U);
}

}  // namespace
}  // namespace dcsim
