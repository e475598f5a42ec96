#include "model/ir/profile.h"

#include <gtest/gtest.h>

#include "model/ir/document.h"
#include "model/ir/graph_text.h"
#include "model/ir/profile_reader.h"
#include "tests/support/error_text.h"
#include "tests/support/row_name.h"

namespace dcsim {
namespace {

/// Op 1 has two returns, the second of which nothing uses.
Graph TwoOps() {
  return ParseGraphText(R"(
graph two-ops 1 tokens
input x float32[4]
forward
  a: float32[4] = my::op(x)
  l: float32[], _ = my::loss(a)
  loss l
)");
}

/// A profile of both ops: op 1 asks for a temporary, its two returns, and gives back the temporary
/// and the return that nothing uses.
Json ValidProfile() {
  Json document = Json::parse(R"({
 "format": "dc-profile/1", "graph": "", "gpu": "NVIDIA H200", "origin": {"steps": "after 3"},
 "steps": 20, "trained_steps": 10, "step_time_ns": 9000, "kernel_gap_ns": 700,
 "kernels": [{"name": "k0", "device_time_ns": 1500, "ctas": 132, "threads": 256,
              "shared_memory_bytes": 49152}],
 "ops": [{"op": 0, "device_time_ns": 1500, "device_time_spread_ns": 20, "host_time_ns": 4900,
          "kernels": [0], "footprint": []},
         {"op": 1, "device_time_ns": 3600000000000, "device_time_spread_ns": 0, "host_time_ns": 0,
          "kernels": [],
          "footprint": [["allocate", 512, null], ["allocate", 4, 0], ["free", 0],
                        ["allocate", 8, 1], ["free", 2]]}]})");
  document["graph"] = HexDigits(TwoOps().hash);
  return document;
}

Profile Read(const Json& document) {
  return ParseProfile(document.dump(), TwoOps(), "p");
}

TEST(ProfileTest, TimesAreNanoseconds) {
  const Profile profile = Read(ValidProfile());
  EXPECT_EQ(profile.gpu, "NVIDIA H200");
  EXPECT_EQ(profile.steps, 20);
  EXPECT_EQ(profile.step_time, Duration::FromNs(9000));
  EXPECT_EQ(profile.kernel_gap, Duration::FromNs(700));
  EXPECT_EQ(profile.ops[0].device_time, Duration::FromNs(1500));
  EXPECT_EQ(profile.ops[0].device_time_spread, Duration::FromNs(20));
  EXPECT_EQ(profile.ops[0].host_time, Duration::FromNs(4900));
}

TEST(ProfileTest, KernelsAreRead) {
  const Kernel kernel = Read(ValidProfile()).kernels.at(0);
  EXPECT_EQ(kernel.name, "k0");
  EXPECT_EQ(kernel.device_time, Duration::FromNs(1500));
  EXPECT_EQ(kernel.ctas, 132);
  EXPECT_EQ(kernel.threads, 256);
  EXPECT_EQ(kernel.shared_memory, Bytes(49152));
}

TEST(ProfileTest, FootprintNumbersBlocksByAllocation) {
  const auto footprint = Read(ValidProfile()).ops[1].footprint;
  ASSERT_EQ(footprint.size(), 5U);
  EXPECT_EQ(footprint[1].kind, FootprintStep::Kind::kAllocate);
  EXPECT_EQ(footprint[1].block, 1U);
  EXPECT_EQ(footprint[1].bytes, Bytes(4));
  EXPECT_EQ(footprint[1].output, 0);
  EXPECT_EQ(footprint[0].output, -1);
  EXPECT_EQ(footprint[4].kind, FootprintStep::Kind::kFree);
  EXPECT_EQ(footprint[4].block, 2U);
}

TEST(ProfileTest, ClockIsOptional) {
  Json document = ValidProfile();
  EXPECT_EQ(Read(document).sm_clock_mhz, 0);
  document["sm_clock_mhz"] = 1855;
  const Profile profile = Read(document);
  EXPECT_EQ(profile.sm_clock_mhz, 1855);
  EXPECT_EQ(Json::parse(PrintProfile(profile))["sm_clock_mhz"], 1855);
}

TEST(ProfileTest, TrainedStepsAreOptional) {
  Json document = ValidProfile();
  EXPECT_EQ(Read(document).trained_steps, 10);
  document.erase("trained_steps");
  EXPECT_EQ(Read(document).trained_steps, 0);
  EXPECT_EQ(PrintProfile(Read(document)).find("trained_steps"), std::string::npos);
}

TEST(ProfileTest, OpsMeasuredSideBySideAreOptional) {
  Json document = ValidProfile();
  EXPECT_TRUE(Read(document).side_by_side.empty());
  document["side_by_side"] = Json::array({document["ops"][1]});
  document["side_by_side"][0]["device_time_ns"] = 7000;
  const Profile profile = Read(document);
  ASSERT_EQ(profile.side_by_side.size(), 1U);
  EXPECT_EQ(profile.side_by_side[0].op, OpId(1));
  EXPECT_EQ(profile.side_by_side[0].device_time, Duration::FromNs(7000));
  EXPECT_EQ(profile.ops[1].device_time, Duration::FromNs(3'600'000'000'000));
  EXPECT_EQ(Json::parse(PrintProfile(profile)), document);

  document["side_by_side"].push_back(document["ops"][0]);
  EXPECT_EQ(ErrorText([&] { Read(document); }), "p: /side_by_side/1: ops must ascend");
  document["side_by_side"] = 3;
  EXPECT_EQ(ErrorText([&] { Read(document); }), "p: /side_by_side: expected a list, found 3");
}

TEST(ProfileTest, PrintGivesTheTextBack) {
  const std::string text = ValidProfile().dump() + "\n";
  EXPECT_EQ(PrintProfile(ParseProfile(text, TwoOps(), "p")), text);
}

TEST(ProfileTest, FindsOpsThatWereMeasured) {
  Profile profile;
  for (const std::size_t op : {1U, 4U, 7U}) {
    OpProfile entry;
    entry.op = OpId(op);
    profile.ops.push_back(entry);
  }
  for (const OpProfile& entry : profile.ops) {
    EXPECT_EQ(profile.FindOp(entry.op), &entry);
  }
}

TEST(ProfileTest, OpsThatWereNotMeasuredAreNull) {
  Profile profile;
  OpProfile entry;
  entry.op = OpId(4);
  profile.ops.push_back(entry);
  EXPECT_EQ(profile.FindOp(OpId(3)), nullptr);
  EXPECT_EQ(profile.FindOp(OpId(5)), nullptr);
}

struct Break {
  const char* name;
  void (*change)(Json& document);
  const char* message;
};

class ProfileFaultTest : public testing::TestWithParam<Break> {};

TEST_P(ProfileFaultTest, IsReported) {
  Json document = ValidProfile();
  GetParam().change(document);
  EXPECT_EQ(ErrorText([&] { Read(document); }), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Header,
    ProfileFaultTest,
    testing::Values(
        Break{"Format", [](Json& d) { d["format"] = "dc-graph/1"; },
              "p: /format: expected a document with \"format\": \"dc-profile/1\", found "
              "\"dc-graph/1\""},
        Break{"NoGpu", [](Json& d) { d.erase("gpu"); }, "p: key 'gpu' is missing"},
        Break{"Untrained", [](Json& d) { d["trained_steps"] = -1; },
              "p: /trained_steps: expected 0 or more"},
        Break{"NoClock", [](Json& d) { d["sm_clock_mhz"] = 0; },
              "p: /sm_clock_mhz: expected MHz from 1 to 100000"},
        Break{"NoOrigin", [](Json& d) { d.erase("origin"); }, "p: key 'origin' is missing"},
        Break{"NegativeSteps", [](Json& d) { d["steps"] = -1; }, "p: /steps: expected 0 or more"},
        Break{"NegativeStepTime", [](Json& d) { d["step_time_ns"] = -1; },
              "p: /step_time_ns: expected nanoseconds from 0 to an hour's"},
        Break{"NoKernelGap", [](Json& d) { d.erase("kernel_gap_ns"); },
              "p: key 'kernel_gap_ns' is missing"},
        Break{"UnknownKey", [](Json& d) { d["gpus"] = 1; },
              "p: /gpus: unknown key 'gpus', did you mean 'gpu'?"}),
    RowName());

TEST(ProfileTest, ProfileOfAnotherGraphIsRefused) {
  Json document = ValidProfile();
  document["graph"] = "0123456789abcdef";
  EXPECT_EQ(ErrorText([&] { Read(document); }),
            "p: /graph: the profile is of graph 0123456789abcdef, the workload's is " +
                HexDigits(TwoOps().hash) + "; profile it again");
}

INSTANTIATE_TEST_SUITE_P(
    Kernels,
    ProfileFaultTest,
    testing::Values(Break{"NegativeTime", [](Json& d) { d["kernels"][0]["device_time_ns"] = -1; },
                          "p: /kernels/0/device_time_ns: expected nanoseconds from 0 to an hour's"},
                    Break{"NegativeCtas", [](Json& d) { d["kernels"][0]["ctas"] = -1; },
                          "p: /kernels/0/ctas: expected 0 or more"},
                    Break{"NegativeThreads", [](Json& d) { d["kernels"][0]["threads"] = -1; },
                          "p: /kernels/0/threads: expected 0 or more"},
                    Break{"NegativeSharedMemory",
                          [](Json& d) { d["kernels"][0]["shared_memory_bytes"] = -1; },
                          "p: /kernels/0/shared_memory_bytes: expected 0 or more"}),
    RowName());

INSTANTIATE_TEST_SUITE_P(
    Ops,
    ProfileFaultTest,
    testing::Values(
        // An unknown op counts as op 0, which then stands behind op 0.
        Break{"OpOutOfRange",
              [](Json& d) {
                d["ops"][1]["op"] = 2;
                d["ops"][1]["footprint"] = Json::array();
              },
              "p: /ops/1/op: expected an index of an op below 2\np: /ops/1: ops must ascend"},
        Break{"SameOpTwice", [](Json& d) { d["ops"][0]["op"] = 1; }, "p: /ops/1: ops must ascend"},
        // An hour is 3.6e12 ns.
        Break{"MoreThanAnHour", [](Json& d) { d["ops"][1]["device_time_ns"] = 3600000000001; },
              "p: /ops/1/device_time_ns: expected nanoseconds from 0 to an hour's"},
        Break{"NegativeHostTime", [](Json& d) { d["ops"][0]["host_time_ns"] = -1; },
              "p: /ops/0/host_time_ns: expected nanoseconds from 0 to an hour's"},
        Break{"NoSpread", [](Json& d) { d["ops"][0].erase("device_time_spread_ns"); },
              "p: /ops/0: key 'device_time_spread_ns' is missing"},
        Break{"KernelOutOfRange", [](Json& d) { d["ops"][0]["kernels"][0] = 1; },
              "p: /ops/0/kernels/0: expected an index of a kernel below 1"}),
    RowName());

INSTANTIATE_TEST_SUITE_P(
    Footprints,
    ProfileFaultTest,
    testing::Values(
        Break{"NoStep",
              [](Json& d) {
                d["ops"][1]["footprint"][0] = {"allocate", 512};
              },
              "p: /ops/1/footprint/0: expected [\"allocate\", bytes, output or null] or [\"free\", "
              "block]\n"
              "p: /ops/1/footprint/2: the block holds an output, which outlives the op\n"
              "p: /ops/1/footprint/4: expected an index of an allocated block below 2\n"
              "p: /ops/1/footprint/4: the block holds an output, which outlives the op"},
        Break{"NoBytes", [](Json& d) { d["ops"][1]["footprint"][0][1] = 0; },
              "p: /ops/1/footprint/0: expected from 1 to 2^48 bytes"},
        // 2^48 + 1
        Break{"TooManyBytes", [](Json& d) { d["ops"][1]["footprint"][0][1] = 281474976710657; },
              "p: /ops/1/footprint/0: expected from 1 to 2^48 bytes"},
        Break{"OutputOutOfRange", [](Json& d) { d["ops"][1]["footprint"][1][2] = 2; },
              "p: /ops/1/footprint/1/2: expected an index of an output below 2"},
        Break{"FreedBeforeItsAllocation", [](Json& d) { d["ops"][1]["footprint"][2][1] = 2; },
              "p: /ops/1/footprint/2: expected an index of an allocated block below 2"},
        Break{"FreedTwice", [](Json& d) { d["ops"][1]["footprint"][4][1] = 0; },
              "p: /ops/1/footprint/4: the block is not allocated"},
        Break{"FreesAnOutput", [](Json& d) { d["ops"][1]["footprint"][4][1] = 1; },
              "p: /ops/1/footprint/4: the block holds an output, which outlives the op"}),
    RowName());

}  // namespace
}  // namespace dcsim
