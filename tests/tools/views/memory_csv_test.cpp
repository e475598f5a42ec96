#include "tools/views/memory_csv.h"

#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/ir/task_label.h"
#include "tests/tools/views/predicted_step.h"

namespace dcsim {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

TEST(MemoryCsvTest, HeaderNamesColumnsAndUnits) {
  const PredictedStep step = PredictStack(1);
  EXPECT_EQ(Lines(PrintMemoryCsv(step.timeline, step.schedule, step.graph)).front(),
            "time_ns,rank,task,kind,label,live_bytes,allocated_bytes,active_bytes,reserved_bytes");
}

TEST(MemoryCsvTest, EverySampleIsALine) {
  const PredictedStep step = PredictStack(1);
  const auto lines = Lines(PrintMemoryCsv(step.timeline, step.schedule, step.graph));
  ASSERT_EQ(lines.size(), step.timeline.memory.size() + 1);
  for (std::size_t i = 0; i < step.timeline.memory.size(); ++i) {
    const MemorySample& sample = step.timeline.memory[i];
    std::ostringstream expected;
    expected << sample.time.ns() << ",0," << sample.task.index() << ","
             << TaskKindName(step.schedule.task(sample.task).kind) << ","
             << TaskLabel(step.schedule, step.graph, sample.task) << "," << sample.live.count()
             << "," << sample.allocated.count() << "," << sample.active.count() << ","
             << sample.reserved.count();
    EXPECT_EQ(lines[i + 1], expected.str());
  }
}

// RFC 4180. Names come from the model's code, which may call a parameter anything.
TEST(MemoryCsvTest, NameWithCommaAndQuotesIsQuoted) {
  PredictedStep step = PredictStack(1);
  step.graph.params[0].name = "a,\"b\"";
  const std::string text = PrintMemoryCsv(step.timeline, step.schedule, step.graph);
  EXPECT_NE(text.find(",all-gather,\"all-gather a,\"\"b\"\"\","), std::string::npos);
}

}  // namespace
}  // namespace dcsim
