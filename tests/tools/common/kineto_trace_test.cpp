#include "tools/common/kineto_trace.h"

#include <optional>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_text.h"
#include "tests/tools/temporary_folder.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

using testing::HasSubstr;

/// An event of the GPU, launched by call `launch`, on stream 7.
std::string Kernel(const std::string& name, double start_us, double duration_us, int launch) {
  std::ostringstream text;
  text << R"({"ph":"X","cat":"kernel","name":")" << name << R"(","ts":)" << start_us << R"(,"dur":)"
       << duration_us << R"(,"args":{"device":0,"stream":7,"correlation":)" << launch
       << R"(,"grid":[1,2,3]}})";
  return text.str();
}

std::string Call(double start_us, int launch) {
  std::ostringstream text;
  text << R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":)" << start_us
       << R"(,"dur":1,"args":{"correlation":)" << launch << "}}";
  return text.str();
}

std::string Marker(int number, double start_us, double duration_us) {
  std::ostringstream text;
  text << R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#)" << number << R"(","ts":)"
       << start_us << R"(,"dur":)" << duration_us << R"(,"args":{"External id":3}})";
  return text.str();
}

std::string Trace(const std::vector<std::string>& events) {
  std::string text;
  for (const std::string& event : events) {
    text += (text.empty() ? "" : ",\n") + event;
  }
  return R"({"schemaVersion":1,"distributedInfo":{"rank":0,"world_size":4,"pg_config":[{"ranks":[0]}]},
"traceEvents":[)" +
         text + "]}";
}

struct Read {
  KinetoTrace trace;
  std::string notes;
};

/// What is read of a file "t.json" with this text; its folder taken out of the notes.
class KinetoTraceTest : public testing::Test {
 protected:
  Read Load(const std::string& text, std::optional<std::int64_t> step = {}) {
    WriteFile(folder_ / "t.json", text);
    std::ostringstream notes;
    Read read{LoadKinetoTrace(folder_ / "t.json", step, notes), ""};
    read.notes = WithoutFolder(notes.str());
    return read;
  }
  std::string ErrorOf(const std::string& text, std::optional<std::int64_t> step = {}) {
    return WithoutFolder(ErrorText([&] { Load(text, step); }));
  }
  std::string WithoutFolder(std::string text) const {
    const std::string path = folder_ / "";
    for (std::size_t at = text.find(path); at != std::string::npos; at = text.find(path)) {
      text.erase(at, path.size());
    }
    return text;
  }

  TemporaryFolder folder_;
};

// Two steps of 100 us on the host. The first one's kernel runs while the host is in the second; the
// one before all steps belongs to none.
const std::vector<std::string> kTwoSteps = {Marker(4, 100, 100),
                                            Marker(5, 200, 100),
                                            Call(50, 9),
                                            Call(110, 1),
                                            Call(250, 2),
                                            Kernel("w", 60, 5, 9),
                                            Kernel("a", 215, 20, 1),
                                            Kernel("b", 275, 30, 2)};

TEST_F(KinetoTraceTest, AnEventBelongsToTheStepThatLaunchedIt) {
  const Read read = Load(Trace(kTwoSteps));
  ASSERT_EQ(read.trace.steps.size(), 2U);
  EXPECT_EQ(read.trace.steps[0].number, 4);
  ASSERT_EQ(read.trace.steps[0].events.size(), 1U);
  EXPECT_EQ(read.trace.names[read.trace.steps[0].events[0].name], "a");
  EXPECT_EQ(read.trace.steps[1].events.size(), 1U);
  EXPECT_EQ(read.trace.ranks, 4);
  EXPECT_EQ(read.notes, "");
}

// From 215 to 275 us the first; the last one as long as its marker, which is longer than its event.
TEST_F(KinetoTraceTest, AStepEndsWhereTheNextBegins) {
  const Read read = Load(Trace(kTwoSteps));
  EXPECT_EQ((read.trace.steps[0].end - read.trace.steps[0].start).ns(), 60'000);
  EXPECT_EQ((read.trace.steps[1].end - read.trace.steps[1].start).ns(), 100'000);
}

TEST_F(KinetoTraceTest, AStepIsTakenByItsNumber) {
  const Read read = Load(Trace(kTwoSteps), 5);
  ASSERT_EQ(read.trace.steps.size(), 1U);
  EXPECT_EQ(read.trace.steps[0].number, 5);
  EXPECT_EQ(ErrorOf(Trace(kTwoSteps), 6),
            "t.json: has no ProfilerStep#6; those with events are 4 to 5");
  EXPECT_EQ(ErrorOf(Trace({Kernel("a", 0, 1, 1)}), 6),
            "t.json: has no ProfilerStep#6; it has no step markers");
}

TEST_F(KinetoTraceTest, WithoutMarkersAllIsOneStep) {
  const Read read = Load(Trace({Kernel("b", 30, 12, 2), Kernel("a", 10, 5.5, 1)}));
  ASSERT_EQ(read.trace.steps.size(), 1U);
  EXPECT_FALSE(read.trace.steps[0].number);
  EXPECT_EQ((read.trace.steps[0].end - read.trace.steps[0].start).ns(), 32'000);
  EXPECT_EQ((read.trace.steps[0].events[0].end - read.trace.steps[0].events[0].start).ns(), 5500);
  EXPECT_EQ(read.notes,
            "t.json: has no step markers (ProfilerStep#N), so all of it is taken as one step\n");
}

TEST_F(KinetoTraceTest, AListOfEventsIsATrace) {
  EXPECT_EQ(Load("[" + Kernel("a", 0, 1, 1) + "]").trace.steps.size(), 1U);
}

TEST_F(KinetoTraceTest, OneGpuIsTaken) {
  std::string other = Kernel("a", 10, 5, 1);
  other.replace(other.find(R"("device":0)"), 10, R"("device":1)");
  const Read read = Load(Trace({other, Kernel("b", 30, 12, 2)}));
  EXPECT_EQ(read.trace.steps[0].events.size(), 1U);
  EXPECT_THAT(read.notes, HasSubstr("t.json: of 2 GPUs the first is taken, device 0\n"));
}

TEST_F(KinetoTraceTest, OfAFolderTheFirstTraceIsTaken) {
  for (const char* name : {"rank1.json", "rank0.json"}) {
    WriteFile(folder_ / name, Trace({Kernel("a", 0, 1, 1)}));
  }
  std::ostringstream notes;
  EXPECT_EQ(LoadKinetoTrace(folder_.path(), {}, notes).file, folder_ / "rank0.json");
  EXPECT_THAT(notes.str(), HasSubstr(": of 2 traces the first is taken, rank0.json\n"));
  const TemporaryFolder empty;
  EXPECT_THAT(ErrorText([&] { LoadKinetoTrace(empty.path(), {}, notes); }),
              HasSubstr("expected traces of torch.profiler (.json, .json.gz), found none"));
}

TEST_F(KinetoTraceTest, ATraceWithoutAGpuIsRefused) {
  EXPECT_EQ(ErrorOf(Trace({Call(1, 1)})),
            "t.json: has no events of a GPU; profile with ProfilerActivity.CUDA");
  EXPECT_EQ(ErrorOf(Trace({})),
            "t.json: has no events of a GPU; profile with ProfilerActivity.CUDA");
}

TEST_F(KinetoTraceTest, EventsOutsideOfAllStepsAreRefused) {
  EXPECT_EQ(ErrorOf(Trace({Marker(1, 100, 10), Call(5, 1), Kernel("a", 6, 1, 1)})),
            "t.json: no event of the GPU lies in one of its ProfilerStep#N");
}

TEST_F(KinetoTraceTest, DamageHasAPlace) {
  const std::string whole = Trace(kTwoSteps);
  EXPECT_THAT(ErrorOf(whole.substr(0, whole.size() / 2)),
              testing::MatchesRegex("t\\.json:[0-9]+:[0-9]+: not valid JSON: [^\n]*"));
  EXPECT_THAT(ErrorOf("{\n  oops"), HasSubstr("t.json:2:3: not valid JSON: "));
  EXPECT_THAT(ErrorOf(""), HasSubstr("t.json:1:1: not valid JSON: "));
}

TEST_F(KinetoTraceTest, WhatIsNoTraceIsRefused) {
  EXPECT_EQ(ErrorOf(R"({"format":"dc-result/1"})"),
            "t.json: expected a trace of torch.profiler, which has traceEvents");
  EXPECT_EQ(ErrorOf("17"), "t.json: expected a trace of torch.profiler, found a single value");
}

TEST_F(KinetoTraceTest, FieldsOfAnotherTypeAreRefused) {
  EXPECT_EQ(ErrorOf(R"([{"ph":"X","cat":"kernel","name":"a","ts":"now","dur":1}])"),
            "t.json: traceEvents/0: ts: expected microseconds below 9e15");
  EXPECT_EQ(ErrorOf(Trace({Kernel("a", 0, 1, 1), Kernel("a", 0, -1, 1)})),
            "t.json: traceEvents/1: dur: expected 0 or more");
  EXPECT_EQ(ErrorOf(Trace({Kernel("a\\u001b[31m", 0, 1, 1)})),
            "t.json: traceEvents/0: name: expected a text without control characters");
  EXPECT_EQ(
      ErrorOf(R"([{"ph":"X","cat":"user_annotation","name":"ProfilerStep#x","ts":0,"dur":1}])"),
      "t.json: traceEvents/0: name: expected ProfilerStep# and a number");
}

}  // namespace
}  // namespace dcsim
