#include "model/ir/result_reader.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/support/error_text.h"

namespace dcsim {
namespace {

Result Sample() {
  Result result;
  result.origin = Origin::kMeasured;
  result.step_time = Duration::FromNs(7);
  result.compute = Duration::FromNs(5);
  result.exposed_communication = Duration::FromNs(2);
  result.peak_allocated = Bytes(30);
  result.peak_reserved = Bytes(40);
  result.workload = "w";
  result.graph_hash = 0x1234;
  result.gpus = 4;
  result.plan = {{"ranks", 4}};
  CollectiveTotals gather;
  gather.calls = 3;
  gather.busy = Duration::FromNs(9);
  result.host_pinned = Bytes(4096);
  result.collectives.push_back(gather);
  return result;
}

Result Read(const Json& document) {
  return ReadResult(document, PointerLocator("r"));
}

TEST(ResultReaderTest, ReadsWhatWasPrinted) {
  const Json document = PrintResult(Sample());
  EXPECT_EQ(PrintResult(Read(document)), document);
}

TEST(ResultReaderTest, HostsOfRanksAreRead) {
  Json document = PrintResult(Sample());
  document["ranks"] = {
      {{"compute_ns", 7}},
      {{"host", {{"ops", 12}, {"times_ns", {80, nullptr}}, {"stolen", 0.25}}}},
      {{"host", {{"ops", 3}, {"times_ns", {80, 90}}, {"between_ns", {nullptr, 7}}, {"step", 4}}}}};
  const auto ranks = Read(document).measurement->ranks;
  ASSERT_EQ(ranks.size(), 3U);
  EXPECT_EQ(ranks[0].host.ops, 0);
  EXPECT_FALSE(ranks[0].host.stolen);
  EXPECT_EQ(ranks[1].host.ops, 12);
  EXPECT_EQ(ranks[1].host.times,
            (std::vector<std::optional<Duration>>{Duration::FromNs(80), std::nullopt}));
  EXPECT_EQ(ranks[1].host.stolen, 0.25);
  EXPECT_TRUE(ranks[1].host.between.empty());
  EXPECT_FALSE(ranks[1].host.step);
  EXPECT_EQ(ranks[2].host.between,
            (std::vector<std::optional<Duration>>{std::nullopt, Duration::FromNs(7)}));
  EXPECT_EQ(ranks[2].host.step, 4);
}

TEST(ResultReaderTest, DelaysByWaitingStreamsAreRead) {
  Result result = Sample();
  result.origin = Origin::kMeasured;
  result.measurement.emplace().ranks.resize(2);
  result.measurement->ranks[1].waiting_delays = {
      Duration(), Duration::FromNs(1), Duration::FromNs(950), Duration(), Duration(), Duration()};
  const Json document = PrintResult(result);
  EXPECT_EQ(document["ranks"][1]["waiting_ns"],
            (Json{{"gather", 1}, {"reduce", 950}, {"copy", 0}, {"offload", 0}, {"reload", 0}}));
  const auto ranks = Read(document).measurement->ranks;
  EXPECT_FALSE(ranks[0].waiting_delays);
  EXPECT_EQ(ranks[1].waiting_delays, result.measurement->ranks[1].waiting_delays);
}

TEST(ResultReaderTest, FaultsOfWaitingStreamsAreReported) {
  Json document = PrintResult(Sample());
  document["ranks"] = {
      {{"waiting_ns", {{"gather", 1}, {"reduce", -2}, {"copy", 0}, {"offload", 0}}}}};
  EXPECT_EQ(ErrorText([&] { Read(document); }),
            "r: /ranks/0/waiting_ns/reduce: expected 0 or more\n"
            "r: /ranks/0/waiting_ns: key 'reload' is missing");
}

TEST(ResultReaderTest, SegmentsAreRead) {
  Result result = Sample();
  result.origin = Origin::kMeasured;
  result.measurement.emplace().ranks.resize(2);
  result.measurement->ranks[1].segments = {{Bytes::MiB(64), Bytes::MiB(20)},
                                           {Bytes(0), Bytes::MiB(2)}};
  const Json document = PrintResult(result);
  EXPECT_EQ(document["ranks"][1]["segments_mib"], (Json{{64, 20}, {0, 2}}));
  EXPECT_FALSE(document["ranks"][0].contains("segments_mib"));
  const auto ranks = Read(document).measurement->ranks;
  EXPECT_TRUE(ranks[0].segments.empty());
  ASSERT_EQ(ranks[1].segments.size(), 2U);
  EXPECT_EQ(ranks[1].segments[0].address, Bytes::MiB(64));
  EXPECT_EQ(ranks[1].segments[0].bytes, Bytes::MiB(20));
  EXPECT_EQ(ranks[1].segments[1].address, Bytes(0));
}

// Losses that are not finite are null in JSON; they count as steps.
TEST(ResultReaderTest, FirstStepsAreRead) {
  Result result = Sample();
  result.origin = Origin::kMeasured;
  MeasurementNotes& notes = result.measurement.emplace();
  notes.losses = {2.5, std::numeric_limits<double>::infinity()};
  notes.step_times = {Duration::FromUs(7), Duration::FromUs(8), Duration::FromUs(9)};
  notes.ranks.resize(2);
  notes.ranks[1].first_host.ops = 10;
  notes.ranks[1].first_host.times = {Duration::FromUs(13'000), std::nullopt};
  notes.ranks[1].reserved_after = {Bytes::MiB(2), Bytes::MiB(22)};
  const Json document = PrintResult(result);
  EXPECT_EQ(document["ranks"][1]["reserved_after_bytes"], (Json{2097152, 23068672}));
  EXPECT_FALSE(document["ranks"][0].contains("first_host"));
  EXPECT_FALSE(document["ranks"][0].contains("reserved_after_bytes"));
  const MeasurementNotes read = *Read(Json::parse(document.dump())).measurement;
  EXPECT_EQ(read.losses.size(), 2U);
  EXPECT_EQ(read.losses.front(), 2.5);
  EXPECT_EQ(read.step_times, notes.step_times);
  EXPECT_EQ(read.ranks[0].first_host.ops, 0);
  EXPECT_EQ(read.ranks[1].first_host.times, notes.ranks[1].first_host.times);
}

TEST(ResultReaderTest, FaultsOfSegmentsAreReported) {
  Json document = PrintResult(Sample());
  document["ranks"] = {{{"segments_mib", 3}},
                       {{"segments_mib", {{64, 20}, {1}, {-2, 2}, {0, 0}, {0, "2"}}}}};
  EXPECT_EQ(ErrorText([&] { Read(document); }),
            "r: /ranks/0/segments_mib: expected an array of pairs: address and bytes, both in MiB\n"
            "r: /ranks/1/segments_mib/1: expected a pair: address and bytes, both in MiB\n"
            "r: /ranks/1/segments_mib/2: expected an address of 0 to 2^30 MiB and 1 to 2^30 MiB at "
            "it\n"
            "r: /ranks/1/segments_mib/3: expected an address of 0 to 2^30 MiB and 1 to 2^30 MiB at "
            "it\n"
            "r: /ranks/1/segments_mib/4/1: expected a whole number, found \"2\"");
}

TEST(ResultReaderTest, FaultsOfAHostAreReported) {
  Json document = PrintResult(Sample());
  document["ranks"] = {{{"host", {{"ops", -1}, {"times_ns", {"80"}}, {"between_ns", {1.5}}}}}};
  EXPECT_EQ(ErrorText([&] { Read(document); }),
            "r: /ranks/0/host/ops: expected 0 or more\n"
            "r: /ranks/0/host/times_ns/0: expected a whole number, found \"80\"\n"
            "r: /ranks/0/host/between_ns/0: expected a whole number, found 1.5");
}

TEST(ResultReaderTest, EveryFaultIsReported) {
  Json document = PrintResult(Sample());
  document["step_time_ns"] = -1;
  document["outcome"] = "done";
  document["workload"]["graph"] = "12";
  EXPECT_EQ(
      ErrorText([&] { Read(document); }),
      "r: /outcome: expected completed, out_of_memory, deadlock or out_of_pinned_memory, found "
      "'done'\n"
      "r: /step_time_ns: expected 0 or more\n"
      "r: /workload/graph: expected 16 hexadecimal digits");
}

TEST(ResultReaderTest, OtherFormatsAreRefused) {
  EXPECT_EQ(
      ErrorText([] {
        Read({{"format", "dc-plan/1"}});
      }),
      "r: /format: expected a document with \"format\": \"dc-result/1\", found \"dc-plan/1\"");
}

}  // namespace
}  // namespace dcsim
