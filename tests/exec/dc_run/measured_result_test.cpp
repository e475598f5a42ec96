// How what the ranks measured becomes one result.

#include "tools/dc_run/measured_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/measure/measurement_text.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

using testing::ElementsAre;

Duration Ns(std::int64_t ns) {
  return Duration::FromNs(ns);
}

exec::RankMeasurement Rank(const std::vector<std::int64_t>& step_times_ns,
                           const std::vector<double>& losses) {
  exec::RankMeasurement rank;
  for (const std::int64_t time : step_times_ns) {
    rank.step_times.push_back(Ns(time));
  }
  rank.losses = losses;
  return rank;
}

Timeline OneSpan() {
  Timeline timeline;
  timeline.origin = Origin::kMeasured;
  timeline.step_time = Ns(260);
  Span span;
  span.task = TaskId(2);
  span.rank = 1;
  span.start = SimTime::FromNs(20);
  span.end = SimTime::FromNs(30);
  timeline.spans.push_back(span);
  timeline.host.push_back({TaskId(3), 1, true, SimTime::FromNs(1), SimTime::FromNs(4)});
  return timeline;
}

class MeasuredResultTest : public testing::Test {
 protected:
  MeasuredResultTest() {
    ranks_[0].compute = Ns(50);
    ranks_[1].compute = Ns(70);
    ranks_[0].exposed_communication = Ns(10);
    ranks_[1].traced_step = Ns(260);
    for (const std::int64_t ns : {80, 85, 90}) {
      ranks_[1].hosts.push_back({8, {std::nullopt, Ns(ns)}, {Ns(5), std::nullopt}, {}, {}});
    }
    ranks_[1].stolen = 0.25;
    ranks_[1].waiting_delays = {Ns(0), Ns(3), Ns(950), Ns(1), Ns(0), Ns(0)};
    ranks_[1].segments = {{Bytes::MiB(4), Bytes::MiB(20)}, {Bytes(0), Bytes::MiB(2)}};
    ranks_[1].first_host = {10, {Ns(13'000'000), std::nullopt}, {}, std::nullopt, std::nullopt};
    ranks_[1].reserved_after = {Bytes::MiB(20), Bytes::MiB(22)};
    ranks_[1].timeline = OneSpan();
    ranks_[1].timeline_start_ns = 1'700'000'000'000'000'000;
    ranks_[0].peak_allocated = Bytes(1000);
    ranks_[1].peak_allocated = Bytes(900);
    ranks_[1].peak_reserved = Bytes(4096);
    ranks_[1].retries = 2;
    ranks_[0].busy = {{CollectiveKind::kAllGather, Ns(40)}};
    ranks_[1].busy = {{CollectiveKind::kAllGather, Ns(20)}};
  }

  Result Merged() const { return MeasuredResult(execution_, ranks_); }

  static ExecutionCase Case(const ProfiledWorkload& workload) {
    const Graph& graph = workload.workload.graph;
    const Plan plan = Resolve(TinySpec(3), graph, 2);
    return {&workload, "zero3.yaml", plan, Lower(plan, graph, nullptr, {})};
  }

  const ProfiledWorkload workload_{{"two-layers", TwoLayers()}, std::nullopt};  // 2 tokens
  const Graph& graph_ = workload_.workload.graph;
  const ExecutionCase execution_ = Case(workload_);
  std::vector<exec::RankMeasurement> ranks_ = {Rank({100, 300, 250}, {4, 3}),
                                               Rank({200, 150, 240}, {5, 2})};
};

// 200, 300 and 250; their median.
TEST_F(MeasuredResultTest, StepsTakeAsLongAsTheSlowestRank) {
  const Result result = Merged();
  EXPECT_THAT(result.measurement->step_times, ElementsAre(Ns(200), Ns(300), Ns(250)));
  EXPECT_EQ(result.step_time, Ns(250));
}

// 2 tokens on each of 2 ranks in 250 ns.
TEST_F(MeasuredResultTest, TokensAreThoseOfAllRanks) {
  EXPECT_DOUBLE_EQ(Merged().tokens_per_second, 4 / 250e-9);
}

// Rank 0 waits for rank 1, whose 70 ns of compute hide all communication.
TEST_F(MeasuredResultTest, TimesAreThoseOfTheRankThatWaitsLeast) {
  const Result result = Merged();
  EXPECT_EQ(result.compute, Ns(70));
  EXPECT_EQ(result.exposed_communication, Ns(0));
  EXPECT_EQ(result.measurement->ranks[0].compute, Ns(50));
  EXPECT_EQ(result.measurement->ranks[0].exposed_communication, Ns(10));
  EXPECT_EQ(result.measurement->ranks[1].traced_step, Ns(260));
}

// The third step, of 250 ns, is the middle one.
TEST_F(MeasuredResultTest, HostsAreReadInTheMiddleStep) {
  const Result result = Merged();
  EXPECT_EQ(result.measurement->ranks[0].host.ops, 0);
  const HostReading& host = result.measurement->ranks[1].host;
  EXPECT_EQ(host.ops, 8);
  EXPECT_THAT(host.times, ElementsAre(std::nullopt, Ns(90)));
  EXPECT_EQ(host.step, 2);
  EXPECT_EQ(host.stolen, 0.25);
}

TEST_F(MeasuredResultTest, WaitingDelaysAreThoseOfEachRank) {
  const Result result = Merged();
  EXPECT_FALSE(result.measurement->ranks[0].waiting_delays);
  EXPECT_EQ(result.measurement->ranks[1].waiting_delays, ranks_[1].waiting_delays);
  EXPECT_EQ(result.measurement->ranks[1].segments, ranks_[1].segments);
  EXPECT_EQ(result.measurement->ranks[1].first_host.times, ranks_[1].first_host.times);
  EXPECT_EQ(result.measurement->ranks[1].reserved_after, ranks_[1].reserved_after);
}

TEST_F(MeasuredResultTest, LossesAreMeansOverRanks) {
  const Result result = Merged();
  EXPECT_THAT(result.measurement->losses, ElementsAre(4.5, 2.5));
}

TEST_F(MeasuredResultTest, MemoryIsThatOfTheFullestRank) {
  const Result result = Merged();
  EXPECT_EQ(result.peak_allocated, Bytes(1000));
  EXPECT_EQ(result.peak_reserved, Bytes(4096));
  EXPECT_EQ(result.allocator_retries, 2);
}

// w1 is gathered for the forward, w2 for both: 16 + 6 + 6 bfloat16s, of which half cross the wire.
// The forward's w2 stays for the backward or not; the schedule says so, and so does this count.
TEST_F(MeasuredResultTest, CollectivesAreTheSchedules) {
  const auto collectives = Merged().collectives;
  ASSERT_GE(collectives.size(), 1U);
  EXPECT_EQ(collectives[0].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(collectives[0].launches, 3);
  EXPECT_EQ(collectives[0].payload, Bytes(2 * (16 + 6 + 6)));
  EXPECT_EQ(collectives[0].wire, Bytes(16 + 6 + 6));
  EXPECT_EQ(collectives[0].busy, Ns(30));
}

TEST_F(MeasuredResultTest, RanksSendWhatTheyMeasured) {
  const exec::RankMeasurement sent =
      exec::ParseRankMeasurement(exec::PrintRankMeasurement(ranks_[1]));
  EXPECT_EQ(sent.step_times, ranks_[1].step_times);
  EXPECT_EQ(sent.waiting_delays, ranks_[1].waiting_delays);
  EXPECT_EQ(sent.segments, ranks_[1].segments);
  EXPECT_EQ(sent.first_host.times, ranks_[1].first_host.times);
  EXPECT_EQ(sent.reserved_after, ranks_[1].reserved_after);
  EXPECT_EQ(sent.losses, ranks_[1].losses);
  EXPECT_EQ(sent.compute, Ns(70));
  EXPECT_EQ(sent.traced_step, Ns(260));
  ASSERT_EQ(sent.hosts.size(), 3U);
  EXPECT_EQ(sent.hosts[1].ops, 8);
  EXPECT_EQ(sent.hosts[1].times, ranks_[1].hosts[1].times);
  EXPECT_EQ(sent.hosts[1].between, ranks_[1].hosts[1].between);
  EXPECT_EQ(sent.stolen, 0.25);
  EXPECT_EQ(sent.timeline_start_ns, ranks_[1].timeline_start_ns);
  ASSERT_TRUE(sent.timeline.has_value());
  EXPECT_EQ(sent.timeline->step_time, Ns(260));
  ASSERT_EQ(sent.timeline->spans.size(), 1U);
  EXPECT_EQ(sent.timeline->spans[0].rank, 1);
  EXPECT_EQ(sent.timeline->spans[0].end.ns(), 30);
  ASSERT_EQ(sent.timeline->host.size(), 1U);
  EXPECT_TRUE(sent.timeline->host[0].waited);
  EXPECT_EQ(sent.peak_reserved, Bytes(4096));
  EXPECT_EQ(sent.retries, 2);
  ASSERT_EQ(sent.busy.size(), 1U);
  EXPECT_EQ(sent.busy[0].busy, Ns(20));
}

}  // namespace
}  // namespace dcsim
