#include "model/ir/result.h"

#include <gtest/gtest.h>

namespace dcsim {
namespace {

Result Completed() {
  Result result;
  result.step_time = Duration::FromUs(3);
  result.compute = Duration::FromUs(2);
  result.exposed_communication = Duration::FromUs(1);
  result.peak_live = Bytes(1);
  result.peak_allocated = Bytes(2);
  result.peak_active = Bytes(3);
  result.peak_reserved = Bytes(4);
  result.outside_allocator = Bytes(12);
  result.allocated_after_step = Bytes(5);
  result.allocator_retries = 6;
  result.collectives = {
      {CollectiveKind::kReduceScatter, 7, 2, Bytes(800), Bytes(600), Duration::FromNs(9)}};
  result.peak_classes = {{BufferClass::kActivation, Bytes(10)}};
  result.workload = "tiny";
  result.graph_hash = 0x1234;
  result.cluster = {{"name", "c"}};
  result.plan = {{"stage", 3}};
  result.gpus = 4;
  result.verdict = "fits";
  result.forward = Duration::FromNs(900);
  result.backward = Duration::FromNs(1900);
  result.optimizer = Duration::FromNs(200);
  result.capacity = Bytes(17);
  result.compute_gaps = Duration::FromNs(13);
  result.exposed_gaps = Duration::FromNs(14);
  result.exposed_starts = Duration::FromNs(16);
  result.peak_reserved_most = Bytes(15);
  result.sm_clock_mhz = 1704.6;
  result.sources = {0.25, 0.5, 0.25};
  result.bound = Duration::FromNs(11);
  result.tokens_per_second = 1234.5;
  result.model_flops_utilisation = 0.5;
  return result;
}

// Keys, order and units of docs/reference/formats.md, dc-result/1.
TEST(ResultTest, PrintsEveryDocumentedKey) {
  EXPECT_EQ(
      PrintResult(Completed()).dump(),
      R"({"format":"dc-result/1","origin":"predicted","outcome":"completed","stop":null,)"
      R"("step_time_ns":3000,"bound_ns":11,"compute_ns":2000,"exposed_communication_ns":1000,)"
      R"("no_bound":null,)"
      R"("verdict":"fits","forward_ns":900,"backward_ns":1900,"optimizer_ns":200,"capacity_bytes":17,)"
      R"("compute_gaps_ns":13,"exposed_gaps_ns":14,"exposed_starts_ns":16,"peak_reserved_most_bytes":15,"peak_live_bytes":1,"peak_allocated_bytes":2,"peak_active_bytes":3,)"
      R"("peak_reserved_bytes":4,"outside_allocator_bytes":12,"allocated_after_step_bytes":5,"allocator_retries":6,)"
      R"("host_pinned_bytes":0,"peak_live_bytes_by_class":{"activations":10},)"
      R"("collectives":[{"kind":"reduce_scatter","calls":7,"launches":2,"payload_bytes":800,)"
      R"("wire_bytes":600,"busy_ns":9}],"tokens_per_second":1234.5,)"
      R"("model_flops_utilisation":0.5,"sources":{"measured":0.25,"interpolated":0.5,)"
      R"("estimated":0.25},"sm_clock_mhz":1705,"gpus":4,"workload":{"name":"tiny","graph":"0000000000001234"},)"
      R"("plan":{"stage":3},"cluster":{"name":"c"}})");
}

TEST(ResultTest, ClockAndPowerOfARankArePrintedWhereTheyWereRead) {
  Result result = Completed();
  result.measurement.emplace();
  result.measurement->ranks.resize(2);
  result.measurement->ranks[1].sm_clock_mhz = 1854.6;
  result.measurement->ranks[1].watts = 689.4;
  const Json ranks = PrintResult(result)["ranks"];
  EXPECT_FALSE(ranks[0].contains("sm_clock_mhz"));
  EXPECT_FALSE(ranks[0].contains("power_watts"));
  EXPECT_EQ(ranks[1]["sm_clock_mhz"], 1855);
  EXPECT_EQ(ranks[1]["power_watts"], 689);
}

TEST(ResultTest, TheHostOfARankIsPrintedWhereItWasRead) {
  Result result = Completed();
  result.measurement.emplace();
  result.measurement->ranks.resize(4);
  result.measurement->ranks[1].host = {12, {Duration::FromUs(80), std::nullopt}, {}, {}, 0.25};
  result.measurement->ranks[2].host.stolen = 0.125;
  result.measurement->ranks[3].host = {3,
                                       {Duration::FromUs(7), Duration::FromUs(8)},
                                       {std::nullopt, Duration::FromUs(9)},
                                       4,
                                       std::nullopt};
  const Json ranks = PrintResult(result)["ranks"];
  EXPECT_FALSE(ranks[0].contains("host"));
  EXPECT_EQ(ranks[1]["host"].dump(), R"({"ops":12,"times_ns":[80000,null],"stolen":0.25})");
  EXPECT_EQ(ranks[2]["host"].dump(), R"({"ops":0,"times_ns":[],"stolen":0.125})");
  EXPECT_EQ(ranks[3]["host"].dump(),
            R"({"ops":3,"times_ns":[7000,8000],"between_ns":[null,9000],"step":4})");
}

// A measured step has no gaps in its compute: kernels count, not ops.
TEST(ResultTest, GapsAreThoseOfAPrediction) {
  Result result = Completed();
  result.origin = Origin::kMeasured;
  EXPECT_FALSE(PrintResult(result).contains("compute_gaps_ns"));
  EXPECT_FALSE(PrintResult(result).contains("exposed_gaps_ns"));
  EXPECT_FALSE(PrintResult(result).contains("exposed_starts_ns"));
}

TEST(ResultTest, UnknownClockIsLeftOut) {
  Result result = Completed();
  result.sm_clock_mhz = 0;
  EXPECT_FALSE(PrintResult(result).contains("sm_clock_mhz"));
}

TEST(ResultTest, UnknownBoundIsNull) {
  Result result = Completed();
  result.bound = std::nullopt;
  EXPECT_TRUE(PrintResult(result)["bound_ns"].is_null());
}

TEST(ResultTest, StopSaysWhereAndHowMuch) {
  Result result = Completed();
  result.outcome = "out_of_memory";
  result.stop = StopReport{"aten::mm model", Bytes(4096), 1, "aten::mm", "activations", {}};
  const Json json = PrintResult(result);
  EXPECT_EQ(json["stop"].dump(),
            R"({"task":"aten::mm model","op":"aten::mm","requested_bytes":4096,)"
            R"("requested_class":"activations","step":1,"needed_bytes_by_class":null})");
  EXPECT_TRUE(json["allocated_after_step_bytes"].is_null());
}

TEST(ResultTest, StopBeforeTheFirstStepSaysWhatIsNeeded) {
  Result result = Completed();
  result.outcome = "out_of_memory";
  result.stop = StopReport{"allocation", Bytes(4096)};
  result.stop->needed = {{BufferClass::kParameter, Bytes(30)}, {BufferClass::kMaster, Bytes(60)}};
  EXPECT_EQ(SumOf(result.stop->needed), Bytes(90));
  EXPECT_EQ(PrintResult(result)["stop"].dump(),
            R"({"task":"allocation","op":null,"requested_bytes":4096,"requested_class":null,)"
            R"("step":0,"needed_bytes_by_class":{"parameters":30,"master weights":60}})");
}

// Two runs are compared byte for byte, so shares have six decimals.
TEST(ResultTest, SharesAndRatesHaveSixDecimals) {
  Result result = Completed();
  result.sources.measured = 1.0 / 3;
  result.tokens_per_second = 2.0 / 3;
  EXPECT_EQ(PrintResult(result)["sources"]["measured"].dump(), "0.333333");
  EXPECT_EQ(PrintResult(result)["tokens_per_second"].dump(), "0.666667");
}

TEST(TimelineNamesTest, StallReasonsAreThoseOfTheTimelineFormat) {
  EXPECT_EQ(StallReasonName(StallReason::kNone), "none");
  EXPECT_EQ(StallReasonName(StallReason::kHost), "host");
  EXPECT_EQ(StallReasonName(StallReason::kEvent), "event");
  EXPECT_EQ(StallReasonName(StallReason::kCommunicator), "communicator");
}

TEST(TimelineNamesTest, OriginSaysWhoMadeIt) {
  EXPECT_EQ(OriginName(Origin::kPredicted), "predicted");
  EXPECT_EQ(OriginName(Origin::kMeasured), "measured");
}

}  // namespace
}  // namespace dcsim
