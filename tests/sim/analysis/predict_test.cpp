#include "sim/analysis/predict.h"

#include <string>

#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/ir/plan_reader.h"
#include "model/passes/resolve.h"
#include "tests/sim/test_cluster.h"
#include "tests/support/error_text.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

// 4 MB of float32: 4,000,004 bytes at 1 TB/s are 4000.004 ns, rounded up.
Graph OneKernel(std::int64_t elements) {
  return ParseGraphText(
      "graph one-kernel 8 tokens\n"
      "input x float32[" +
      std::to_string(elements) +
      "]\n"
      "forward\n"
      "  l: float32[] = aten::sum(x)\n"
      "  loss l\n");
}

PlanSpec Stage(int stage) {
  PlanSpec spec;
  spec.options.stage = stage;
  spec.options.reduce_bucket = 1'000'000;
  return spec;
}

/// Everything that a prediction needs, on HandCluster.
struct Case {
  Case(Graph the_graph, const PlanSpec& spec, int ranks, Cluster the_cluster = HandCluster())
      : graph(std::move(the_graph)),
        cluster(std::move(the_cluster)),
        plan(Resolve(spec, graph, ranks)) {}

  Prediction Run(const Profile* profile = nullptr, bool keep_timeline = false) const {
    const PredictionInputs inputs{graph, profile, cluster};
    return Predict(LowerFor(plan, inputs), plan, inputs, keep_timeline);
  }

  Graph graph;
  Cluster cluster;
  Plan plan;
};

/// HandCluster whose allocator has this much.
Cluster ClusterOf(Bytes memory) {
  Cluster cluster = HandCluster();
  cluster.gpu.memory = memory + kDriverReserve;
  cluster.gpu.outside_allocator = Bytes(0);
  return cluster;
}

// A launch takes 4 us of the host, a small kernel 1 us: the host sets the pace.
TEST(PredictTest, HostBoundStepTakesItsLaunches) {
  const Result result = Case(OneKernel(2), Stage(3), 1).Run().result;
  EXPECT_EQ(result.step_time, Duration::FromUs(4));
  EXPECT_EQ(result.compute, Duration::FromUs(1));
}

/// A GPU whose host link moves 1 GB/s.
Cluster SlowLink() {
  Cluster cluster = HandCluster();
  cluster.gpu.host_bandwidth = BytesPerSecond(1'000'000'000);
  return cluster;
}

PlanSpec OffloadSpec(Bytes bytes) {
  PlanSpec spec = Stage(3);
  spec.offload_optimizer.bytes = bytes;
  return spec;
}

// One state of a million float32 takes 4 ms each way over 1 GB/s. The way back follows the way out
// on one stream, AdamW (28 MB at 1 TB/s: 28 us) waits for it, the weights are stored (6 MB: 6 us),
// and only then the next step's copy can begin; everything else of the step fits beside the copies.
TEST(PredictTest, AnOffloadedStateIsCopiedOutAndBackInEachStep) {
  const Result result = Case(OneLayer(), OffloadSpec(Bytes(1)), 1, SlowLink()).Run().result;
  EXPECT_EQ(result.step_time, Duration::FromUs(4000 + 4000 + 28 + 6));
  EXPECT_EQ(result.host_pinned, Bytes(4'194'304));  // 4 MB in a power of two
}

TEST(PredictTest, AMeasuredRateOfTheHostLinkIsTakenFirst) {
  Cluster cluster = SlowLink();
  cluster.memory_patterns = {{MemoryPattern::kReload, BytesPerSecond(2'000'000'000)}};
  const Result result = Case(OneLayer(), OffloadSpec(Bytes(1)), 1, cluster).Run().result;
  EXPECT_EQ(result.step_time, Duration::FromUs(4000 + 2000 + 28 + 6));
  EXPECT_GT(result.sources.measured, 0);
}

TEST(PredictTest, AnUnknownHostLinkIsAnError) {
  const Case unknown(OneLayer(), OffloadSpec(Bytes(1)), 1);
  EXPECT_EQ(ErrorText([&] { unknown.Run(); }),
            "gpu Hand GPU: host_bandwidth is missing, which a plan that offloads needs");
}

// Each state takes 4 MB, 4 MiB pinned; two of them on each of the machine's 8 GPUs take 64 MiB.
TEST(PredictTest, TooMuchPinnedMemoryIsAnOutcome) {
  Cluster cluster = SlowLink();
  cluster.pinned_memory = Bytes::MiB(64);
  const PlanSpec spec = OffloadSpec(Bytes(4'000'001));
  EXPECT_EQ(Case(OneLayer(), spec, 1, cluster).Run().result.outcome, "completed");
  cluster.pinned_memory = Bytes::MiB(64) - Bytes(8);
  const Result result = Case(OneLayer(), spec, 1, cluster).Run().result;
  EXPECT_EQ(result.outcome, "out_of_pinned_memory");
  EXPECT_EQ(result.stop->task, "what one GPU offloads");
  EXPECT_EQ(result.stop->requested, Bytes::MiB(8));
}

// A forward of 80 MB, with states of 3 * 4 MB that nothing needs then.
TEST(PredictTest, OffloadedStatesAreMissingAtThePeakOfTheForward) {
  const Graph graph = ParseGraphText(R"(
graph wide 4 tokens
param w bfloat16[1000,1000]
input x bfloat16[4,1000]
forward
  a: bfloat16[40000,1000] = my::widen(x, w)
  l: bfloat16[] = aten::sum(a)
  loss l
backward of 0
  tangent t: bfloat16[] of l
  gw: bfloat16[1000,1000] = my::grad(x, t)
  gradient w = gw
)");
  const auto peak = [&](const PlanSpec& spec) {
    return Case(graph, spec, 1, SlowLink()).Run().result.peak_live;
  };
  EXPECT_EQ(peak(Stage(3)) - peak(OffloadSpec(Bytes(12'000'000))), Bytes(12'000'000));
}

// 8,000,004 bytes in 8001 ns: longer than the launch.
TEST(PredictTest, GpuBoundStepTakesItsKernels) {
  const Result result = Case(OneKernel(2'000'000), Stage(3), 1).Run().result;
  EXPECT_EQ(result.step_time, Duration::FromNs(8001));
  EXPECT_EQ(result.compute, Duration::FromNs(8001));
}

TEST(PredictTest, ResultNamesItsInputs) {
  const Case each(OneLayer(), Stage(3), 2);
  const Result result = each.Run().result;
  EXPECT_EQ(result.origin, Origin::kPredicted);
  EXPECT_EQ(result.outcome, "completed");
  EXPECT_EQ(result.workload, "one-layer");
  EXPECT_EQ(result.graph_hash, each.graph.hash);
  EXPECT_EQ(result.gpus, 2);
  EXPECT_EQ(result.cluster, each.cluster.document);
  EXPECT_EQ(result.plan, PrintPlan(each.plan, each.graph));
}

// 8 tokens a micro-step on each of 4 ranks: in one micro-step 4 us, 8e6 tokens a second.
TEST(PredictTest, TokensPerSecondCountAllRanks) {
  EXPECT_DOUBLE_EQ(Case(OneKernel(2), Stage(3), 4).Run().result.tokens_per_second, 8e6);
}

// Two micro-steps take two launches and have twice the tokens.
TEST(PredictTest, TokensPerSecondCountAllMicroSteps) {
  PlanSpec spec = Stage(3);
  spec.options.gradient_accumulation_steps = 2;
  const Result result = Case(OneKernel(2), spec, 4).Run().result;
  EXPECT_EQ(result.step_time, Duration::FromUs(8));
  EXPECT_DOUBLE_EQ(result.tokens_per_second, 8e6);
}

// 16e6 FLOP of a rank in the step's time, of 100e12 a second.
TEST(PredictTest, UtilisationIsModelFlopsOverPeak) {
  const Result result = Case(OneLayer(), Stage(1), 2).Run().result;
  EXPECT_DOUBLE_EQ(result.model_flops_utilisation, 16e6 / result.step_time.seconds() / 100e12);
}

// ZeRO-3 gathers w for the forward and, since its gradient needs only x, not for the backward; it
// reduces it once. 1,000,000 elements of bfloat16.
TEST(PredictTest, CollectivesAreThoseOfTheSchedule) {
  const auto collectives = Case(OneLayer(), Stage(3), 2).Run().result.collectives;
  ASSERT_EQ(collectives.size(), 2U);
  EXPECT_EQ(collectives[0].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(collectives[0].calls, 1);
  EXPECT_EQ(collectives[1].kind, CollectiveKind::kReduceScatter);
  EXPECT_EQ(collectives[1].payload, Bytes(2'000'000));
}

// x: 8 bytes, l: 4 bytes, and l of the step before: three blocks of 512, two of them behind it.
TEST(PredictTest, MemoryIsThatOfTheMeasuredStep) {
  const Result result = Case(OneKernel(2), Stage(3), 1).Run().result;
  EXPECT_EQ(result.peak_live, Bytes(8 + 4 + 4));
  EXPECT_EQ(result.peak_allocated, Bytes(1536));
  EXPECT_EQ(result.allocated_after_step, Bytes(1024));
  EXPECT_EQ(result.peak_reserved, Bytes::MiB(2));
}

TEST(PredictTest, OutOfMemoryNamesTheTaskAndHasNoTime) {
  // 2 MB of weights and 12 MB of optimizer fit in 20 MiB; the gradient's bucket does not.
  const Result result = Case(OneLayer(), Stage(3), 1, ClusterOf(Bytes::MiB(20))).Run().result;
  EXPECT_EQ(result.outcome, "out_of_memory");
  ASSERT_TRUE(result.stop.has_value());
  EXPECT_FALSE(result.stop->task.empty());
  EXPECT_GT(result.stop->requested, Bytes(0));
  EXPECT_EQ(result.step_time, Duration());
}

TEST(PredictTest, WeightsThatDoNotFitAreNamed) {
  const Result result = Case(OneLayer(), Stage(3), 1, ClusterOf(Bytes::MiB(4))).Run().result;
  ASSERT_TRUE(result.stop.has_value());
  EXPECT_EQ(result.stop->task, "allocation of weights and optimizer states");
}

TEST(PredictTest, TimelineIsKeptWhenAskedFor) {
  const Case each(OneLayer(), Stage(3), 2);
  EXPECT_FALSE(each.Run().timeline.has_value());
  const Prediction kept = each.Run(nullptr, true);
  ASSERT_TRUE(kept.timeline.has_value());
  EXPECT_EQ(kept.timeline->step_time, kept.result.step_time);
}

TEST(PredictTest, StepThatCannotBeginHasAnEmptyTimeline) {
  const Case each(OneLayer(), Stage(3), 1, ClusterOf(Bytes::MiB(4)));
  const Prediction prediction = each.Run(nullptr, true);
  ASSERT_TRUE(prediction.timeline && prediction.timeline->stop);
  EXPECT_TRUE(prediction.timeline->stop->task.is_none());
  EXPECT_TRUE(prediction.timeline->spans.empty());
  EXPECT_FALSE(each.Run(nullptr, false).timeline.has_value());
}

// The only kernel, of 30 us instead of the roofline's 1 us.
TEST(PredictTest, ProfileReplacesTheRoofline) {
  const Case each(OneKernel(2), Stage(3), 1);
  Profile profile;
  OpProfile entry;
  entry.op = OpId(0);
  entry.device_time = Duration::FromUs(30);
  profile.ops.push_back(entry);
  const Result result = each.Run(&profile).result;
  EXPECT_EQ(result.compute, Duration::FromUs(30));
  EXPECT_DOUBLE_EQ(result.sources.measured, 1.0);
  EXPECT_DOUBLE_EQ(each.Run().result.sources.estimated, 1.0);
}

TEST(PredictTest, OptionsComeFromClusterAndPlan) {
  PlanSpec spec = Stage(3);
  spec.options.allocator = AllocatorMode::kExpandableSegments;
  const Case each(OneKernel(2), spec, 1);
  const PredictionInputs inputs{each.graph, nullptr, each.cluster};
  const SimulationOptions options = OptionsFor(LowerFor(each.plan, inputs), each.cluster);
  EXPECT_EQ(options.allocator.capacity, Bytes::GiB(63) - kDriverReserve);  // 1 GiB is outside
  EXPECT_EQ(options.allocator.device_memory, Bytes::GiB(64));
  EXPECT_TRUE(options.allocator.expandable_segments);
  EXPECT_EQ(options.synchronize, Duration::FromUs(10));
  EXPECT_EQ(options.segment, Duration::FromUs(100));
  EXPECT_EQ(options.give_back_rate, BytesPerSecond(500'000'000'000));
  EXPECT_EQ(options.warmup_steps, 2U);
  EXPECT_EQ(options.measured_steps, 1U);
}

// The slowest GPU at 990 of 1000 MHz: no other is more than a 99th faster. Where copy engines
// gather, nothing brings ranks together, and a rank that knows no clock may have any.
TEST(PredictTest, RanksDriftApartNoFasterThanTheirClocksMayDiffer) {
  Cluster cluster = HandCluster();
  cluster.gpu.contention.drift = Share::FromPermille(13);
  cluster.gpu.power.emplace().highest_mhz = 1000;
  ScheduleOptions chosen;
  const auto drift = [&](double clock_mhz) {
    return OptionsFor(chosen, cluster, 2, clock_mhz).contention.drift.permille();
  };
  EXPECT_EQ(drift(1000), 0);
  EXPECT_EQ(drift(990), 10);
  EXPECT_EQ(drift(900), 13);
  EXPECT_EQ(drift(0), 13);
  chosen.gather_engine = Engine::kCopyEngine;
  EXPECT_EQ(drift(1000), 13);
  cluster.gpu.power.reset();
  chosen.gather_engine = Engine::kNccl;
  EXPECT_EQ(drift(1000), 13);
}

// 1 GiB of context; 100 MiB for NCCL, 30 more for all-reduces, 300 for a second communicator.
TEST(PredictTest, CommunicatorsTakeMemoryFromTensors) {
  Cluster cluster = HandCluster();
  cluster.communicator_memory = {Bytes::MiB(100), Bytes::MiB(30), Bytes::MiB(300)};
  const auto outside = [&](const PlanSpec& spec, int ranks) {
    const Case each(OneKernel(2), spec, ranks, cluster);
    const PredictionInputs inputs{each.graph, nullptr, cluster};
    const auto options = OptionsFor(LowerFor(each.plan, inputs), cluster);
    const Bytes bytes = each.Run().result.outside_allocator - Bytes::GiB(1);
    EXPECT_EQ(options.allocator.capacity, Bytes::GiB(63) - bytes - kDriverReserve);
    return bytes;
  };
  EXPECT_EQ(outside(Stage(3), 1), Bytes(0));
  EXPECT_EQ(outside(Stage(3), 2), Bytes::MiB(100));
  EXPECT_EQ(outside(Stage(1), 2), Bytes::MiB(130));
  PlanSpec clipped = Stage(3);
  clipped.options.gradient_clipping = 1;
  EXPECT_EQ(outside(clipped, 2), Bytes::MiB(130));
  PlanSpec apart = Stage(3);
  apart.options.communicators = 2;
  EXPECT_EQ(outside(apart, 2), Bytes::MiB(400));
}

TEST(PredictTest, GpuThatLeavesNoMemoryIsAnError) {
  Cluster cluster = HandCluster();
  cluster.gpu.memory = Bytes::GiB(1);
  EXPECT_EQ(ErrorText([&] { Case(OneKernel(2), Stage(3), 1, cluster).Run(); }),
            "gpu Hand GPU: memory: expected more than 1026 MiB, which outside_allocator and the "
            "driver take, and at most 1 TiB more, found 1 GiB");
}

TEST(PredictTest, GpuWithMoreMemoryThanTheReplayCanDescribeIsAnError) {
  Cluster cluster = HandCluster();
  cluster.gpu.memory = Bytes::GiB(1026);
  EXPECT_NE(ErrorText([&] { Case(OneKernel(2), Stage(3), 1, cluster).Run(); }).find("1026 GiB"),
            std::string::npos);
}

TEST(PredictTest, WorkspacesOfTheGpuStayBehindAProduct) {
  Cluster cluster = HandCluster();
  cluster.gpu.workspaces = {Bytes::MiB(32)};
  const auto classes = Case(OneLayer(), Stage(3), 1, cluster).Run().result.peak_classes;
  ASSERT_FALSE(classes.empty());
  EXPECT_EQ(classes.back().buffer_class, BufferClass::kWorkspace);
  EXPECT_EQ(classes.back().bytes, Bytes::MiB(32));
}

}  // namespace
}  // namespace dcsim
