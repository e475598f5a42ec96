#include "tools/views/timeline_trace.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/ir/document.h"
#include "model/ir/task_label.h"
#include "tests/tools/views/predicted_step.h"

namespace dcsim {
namespace {

std::string TraceText(const PredictedStep& step) {
  return PrintTimelineTrace({&step.timeline, 1}, step.schedule, step.graph, {{"dc-sim", "0.1.0"}});
}

Json Trace(const PredictedStep& step) {
  return Json::parse(TraceText(step));
}

/// Events of one phase ("X": spans, "C": counters, "s" and "f": ends of arrows, "M": names).
std::vector<Json> Events(const Json& trace, const std::string& phase) {
  std::vector<Json> events;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) {
      events.push_back(event);
    }
  }
  return events;
}

/// Exact nanoseconds of a number of microseconds.
std::int64_t Ns(const Json& us) {
  return std::llround(us.get<double>() * 1000);
}

constexpr int kHost = 6;  // behind the streams

TEST(TimelineTraceTest, HeaderSaysWhatItIs) {
  const PredictedStep step = PredictStack(1);
  const Json trace = Trace(step);
  EXPECT_EQ(trace.begin().key(), "format");
  EXPECT_EQ(trace["format"], "dc-timeline/1");
  EXPECT_EQ(trace["origin"], "predicted");
  EXPECT_EQ(trace["workload"], "stack");
  EXPECT_EQ(trace["step_time_ns"], step.timeline.step_time.ns());
}

// The same step twice: each rank is a process with its own spans, arrows and memory.
TEST(TimelineTraceTest, ProcessesAreRanks) {
  const PredictedStep step = PredictStack(1);
  std::vector<Timeline> ranks(2, step.timeline);
  for (Span& span : ranks[1].spans) {
    span.rank = 1;
  }
  for (HostWork& work : ranks[1].host) {
    work.rank = 1;
  }
  for (MemorySample& sample : ranks[1].memory) {
    sample.rank = 1;
  }
  const Json one = Trace(step);
  const Json both =
      Json::parse(PrintTimelineTrace(ranks, step.schedule, step.graph, {{"dc-sim", "0.1.0"}}));
  for (const char* phase : {"X", "C", "s", "f", "M"}) {
    std::map<int, std::size_t> events;
    for (const Json& event : Events(both, phase)) {
      ++events[event["pid"].get<int>()];
    }
    const std::size_t expected = Events(one, phase).size();
    EXPECT_EQ(events, (std::map<int, std::size_t>{{0, expected}, {1, expected}})) << phase;
  }
  std::set<int> arrows;
  for (const Json& event : Events(both, "s")) {
    EXPECT_TRUE(arrows.insert(event["id"].get<int>()).second);
  }
}

TEST(TimelineTraceTest, ThreadsAreStreamsAndHost) {
  std::map<int, std::string> names;
  for (const Json& event : Events(Trace(PredictStack(1)), "M")) {
    if (event["name"] == "thread_name") {
      names[event["tid"].get<int>()] = event["args"]["name"].get<std::string>();
    }
  }
  const std::map<int, std::string> expected = {{0, "compute"}, {1, "gather"},  {2, "reduce"},
                                               {3, "copy"},    {4, "offload"}, {5, "reload"},
                                               {6, "host"}};
  EXPECT_EQ(names, expected);
}

TEST(TimelineTraceTest, EverySpanWithALengthIsThere) {
  const PredictedStep step = PredictStack(2);
  std::map<std::size_t, Json> by_task;
  for (const Json& event : Events(Trace(step), "X")) {
    if (event["tid"] != kHost) {
      by_task[event["args"]["task"].get<std::size_t>()] = event;
    }
  }
  std::size_t with_length = 0;
  for (const Span& span : step.timeline.spans) {
    if (span.start == span.end) {
      continue;
    }
    ++with_length;
    ASSERT_TRUE(by_task.contains(span.task.index()));
    const Json& event = by_task[span.task.index()];
    EXPECT_EQ(Ns(event["ts"]), span.start.ns());
    EXPECT_EQ(Ns(event["dur"]), (span.end - span.start).ns());
    EXPECT_EQ(event["tid"], span.stream);
    EXPECT_EQ(event["name"], TaskLabel(step.schedule, step.graph, span.task));
    EXPECT_EQ(event["args"]["stall"], StallReasonName(span.stall));
  }
  EXPECT_EQ(by_task.size(), with_length);
}

TEST(TimelineTraceTest, EveryWorkOfTheHostIsThere) {
  const PredictedStep step = PredictStack(2);
  std::vector<std::int64_t> expected;
  for (const HostWork& work : step.timeline.host) {
    if (work.start != work.end) {
      expected.push_back(work.start.ns());
    }
  }
  std::vector<std::int64_t> found;
  for (const Json& event : Events(Trace(step), "X")) {
    if (event["tid"] == kHost) {
      found.push_back(Ns(event["ts"]));
    }
  }
  EXPECT_EQ(found, expected);
}

TEST(TimelineTraceTest, CollectivesSayWhatTheyMove) {
  const PredictedStep step = PredictStack(1);
  for (const Json& event : Events(Trace(step), "X")) {
    if (event["cat"] == "all-gather" && event["tid"] == 1) {
      EXPECT_EQ(event["args"]["payload_bytes"], 64 * 64 * 2);  // bfloat16[64,64]
      EXPECT_EQ(event["args"]["calls"], 1);
    }
  }
}

// A nanosecond is the third decimal of a microsecond: more would be noise, an exponent would not
// be read everywhere.
TEST(TimelineTraceTest, TimesHaveAtMostThreeDecimals) {
  const std::string text = TraceText(PredictStack(2));
  for (const std::string key : {"\"ts\":", "\"dur\":"}) {
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
      const std::size_t start = at + key.size();
      const std::string number = text.substr(start, text.find_first_of(",}", start) - start);
      EXPECT_EQ(number.find_first_not_of("-0123456789."), std::string::npos) << number;
      const std::size_t point = number.find('.');
      EXPECT_LE(point == std::string::npos ? 0 : number.size() - point - 1, 3U) << number;
    }
  }
}

/// The first task that reads what a gather has written.
TaskId FirstUse(const Schedule& schedule, TaskId gather) {
  std::set<std::size_t> written;
  for (const BufferUse& use : schedule.uses(gather)) {
    if (use.writes) {
      written.insert(use.buffer.index());
    }
  }
  for (std::size_t i = gather.index() + 1; i < schedule.task_count(); ++i) {
    for (const BufferUse& use : schedule.uses(TaskId(i))) {
      if (!use.writes && written.contains(use.buffer.index())) {
        return TaskId(i);
      }
    }
  }
  return TaskId::None();
}

const Span& SpanOf(const PredictedStep& step, TaskId task) {
  return *std::find_if(step.timeline.spans.begin(), step.timeline.spans.end(),
                       [task](const Span& span) { return span.task == task; });
}

// On threads 1 (gather) to 0 (compute).
TEST(TimelineTraceTest, EveryGatherHasOneArrowToItsFirstUse) {
  const PredictedStep step = PredictStack(2);
  const Json trace = Trace(step);
  std::vector<std::pair<std::int64_t, std::int64_t>> expected;
  for (std::size_t i = 0; i < step.schedule.task_count(); ++i) {
    if (step.schedule.task(TaskId(i)).kind == TaskKind::kAllGather) {
      expected.emplace_back(SpanOf(step, TaskId(i)).start.ns(),
                            SpanOf(step, FirstUse(step.schedule, TaskId(i))).start.ns());
    }
  }
  std::map<int, std::int64_t> heads;
  for (const Json& event : Events(trace, "f")) {
    EXPECT_TRUE(heads.emplace(event["id"].get<int>(), Ns(event["ts"])).second);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  for (const Json& event : Events(trace, "s")) {
    if (event["tid"] == 1) {
      found.emplace_back(Ns(event["ts"]), heads.at(event["id"].get<int>()));
    }
  }
  EXPECT_EQ(found, expected);
}

TEST(TimelineTraceTest, ArrowsHaveTwoEnds) {
  const Json trace = Trace(PredictStack(2));
  EXPECT_EQ(Events(trace, "s").size(), Events(trace, "f").size());
}

TEST(TimelineTraceTest, CountersAreTheMemorySamples) {
  const PredictedStep step = PredictStack(1);
  const auto counters = Events(Trace(step), "C");
  ASSERT_EQ(counters.size(), step.timeline.memory.size());
  for (std::size_t i = 0; i < counters.size(); ++i) {
    const MemorySample& sample = step.timeline.memory[i];
    EXPECT_EQ(Ns(counters[i]["ts"]), sample.time.ns());
    EXPECT_EQ(counters[i]["args"]["live"], sample.live.count());
    EXPECT_EQ(counters[i]["args"]["allocated"], sample.allocated.count());
    EXPECT_EQ(counters[i]["args"]["active"], sample.active.count());
    EXPECT_EQ(counters[i]["args"]["reserved"], sample.reserved.count());
  }
}

// docs/reference/formats.md: 3 hours in microseconds keep their nanoseconds.
TEST(TimelineTraceTest, LongTimesKeepTheirNanoseconds) {
  PredictedStep step = PredictStack(1);
  const SimTime late = SimTime::FromNs(10'800'000'000'001);
  step.timeline.spans.back().start = late;
  step.timeline.spans.back().end = late + Duration::FromNs(1);
  EXPECT_NE(TraceText(step).find("\"ts\":10800000000.001"), std::string::npos);
}

}  // namespace
}  // namespace dcsim
