#include "tools/views/step_detail.h"

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
    drawn += stream["start_ns"].size();
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

}  // namespace
}  // namespace dcsim
