#include "model/cost/work_cost.h"

#include <gtest/gtest.h>

#include "model/cost/kernel_models.h"
#include "model/ir/graph_text.h"
#include "tests/model/cost/gpu_with_kernels.h"
#include "tests/model/machine/cluster_document.h"
#include "tests/support/error_text.h"

namespace dcsim {
namespace {

// The GPU of TestCluster: products 500 TFLOP/s in bfloat16 and 50 in float32, streaming 1 TB/s
// (1 B/ps), no kernel below 2 us. Host: view 1, launch 5, NCCL call 8, event 0.5 us.

/// Op 0 is a view, op 1 the line `op`, op 2 the loss.
Graph Sample(const std::string& inputs, const std::string& op) {
  return ParseGraphText("graph g 1 tokens\n" + inputs +
                        "\ninput x float32[2]\nforward\nv: float32[2] views x = aten::t(x)\n" + op +
                        "\nl: float32[] = my::loss(y)\nloss l\n");
}

Graph LargeProduct(const std::string& dtype) {
  return Sample("input a " + dtype + "[1000,2000]\ninput b " + dtype + "[2000,5000]",
                "y: " + dtype + "[1000,5000] = aten::mm(a, b)");
}

// 2 * 1000 * 2000 * 5000 = 2e10 FLOP at 5e14 a second: 40 us. Its 34 MB take 34 us.
TEST(RooflineTest, LargeProductTakesItsFlops) {
  EXPECT_EQ(KernelTime(TraitsOf(LargeProduct("bfloat16"), OpId(1)), TestCluster().gpu).ns(),
            40'000);
}

// The same in float32, at 5e13 a second: 400 us.
TEST(RooflineTest, PeakIsThatOfTheDType) {
  EXPECT_EQ(KernelTime(TraitsOf(LargeProduct("float32"), OpId(1)), TestCluster().gpu).ns(),
            400'000);
}

// [1, 4000] x [4000, 4000]: 32 MFLOP take 0.064 us, its 32,016,000 bytes 32.016 us.
TEST(RooflineTest, ThinProductTakesItsBytes) {
  const Graph graph = Sample("input a bfloat16[1,4000]\ninput b bfloat16[4000,4000]",
                             "y: bfloat16[1,4000] = aten::mm(a, b)");
  EXPECT_EQ(KernelTime(TraitsOf(graph, OpId(1)), TestCluster().gpu).ns(), 32'016);
}

// 3 * 1e6 elements of 4 bytes: 12 us.
TEST(RooflineTest, OtherOpsTakeTheirBytes) {
  const Graph graph = Sample("input a float32[1000000]", "y: float32[2000000] = aten::cat(a)");
  EXPECT_EQ(KernelTime(TraitsOf(graph, OpId(1)), TestCluster().gpu).ns(), 12'000);
}

// 3,000,001 bytes at 1000 a nanosecond.
TEST(RooflineTest, IsRoundedUp) {
  const Graph graph = Sample("input a uint8[3000000]", "y: uint8[1] = my::op(a)");
  EXPECT_EQ(KernelTime(TraitsOf(graph, OpId(1)), TestCluster().gpu).ns(), 3'001);
}

TEST(RooflineTest, NoKernelIsShorterThanTheShortest) {
  const Graph graph = Sample("input a float32[1]", "y: float32[1] = my::op(a)");
  EXPECT_EQ(KernelTime(TraitsOf(graph, OpId(1)), TestCluster().gpu).ns(), 2'000);
}

// [1, 8, 1000, 100] by itself, not causal: 4 * 8 * 1000 * 1000 * 100 = 3.2e9 FLOP. At a quarter of
// 1e15 a second 12.8 us; 4 tensors of 1.6 MB take 6.4 us.
TEST(RooflineTest, AttentionHasItsOwnEfficiency) {
  const Graph graph =
      Sample("input q bfloat16[1,8,1000,100]\ninput k bfloat16[1,8,1000,100]",
             "y: bfloat16[1,8,1000,100] = aten::_scaled_dot_product_flash_attention(q, k, k)");
  EXPECT_EQ(KernelTime(TraitsOf(graph, OpId(1)), TestCluster().gpu).ns(), 12'800);
}

// 2.5 times the work at half of the efficiency: 12.8 * 2.5 * 2 us.
TEST(RooflineTest, AttentionBackwardHasItsOwnEfficiency) {
  const Graph graph = Sample(
      "input dy bfloat16[1,8,1000,100]\ninput q bfloat16[1,8,1000,100]",
      "y: bfloat16[1,8,1000,100] = aten::_scaled_dot_product_flash_attention_backward(dy, q, q, "
      "q)");
  EXPECT_EQ(KernelTime(TraitsOf(graph, OpId(1)), TestCluster().gpu).ns(), 64'000);
}

TEST(RooflineTest, DTypeThatTheGpuDoesNotMultiplyIsAnError) {
  const Graph graph = LargeProduct("float64");
  EXPECT_EQ(ErrorText([&] { KernelTime(TraitsOf(graph, OpId(1)), TestCluster().gpu); }),
            "gpu GPU: matmul: no rate for float64, which aten::mm needs");
}

/// The cost of one work over op 1 of LargeProduct's graph.
WorkCost CostOf(const Work& work,
                const Profile* profile = nullptr,
                const Cluster& cluster = TestCluster()) {
  ScheduleBuilder builder(4, ScheduleOptions());
  Collective collective;
  collective.ranks = 4;
  collective.calls = {{ParamId(0), 500'000, 0}, {ParamId(1), 1'000'000, 0}};
  builder.AddCollective(collective);
  collective.one_launch = true;
  builder.AddCollective(collective);
  collective.one_launch = false;
  collective.engine = Engine::kCopyEngine;
  builder.AddCollective(collective);
  TaskDraft draft;
  draft.work = work;
  builder.Add(draft);
  const Schedule schedule = std::move(builder).Build();
  return EstimateWorks(schedule, LargeProduct("bfloat16"), profile, cluster).at(0);
}

Work OpWork(std::uint32_t op) {
  Work work;
  work.kind = Work::Kind::kOp;
  work.subject = op;
  return work;
}

/// By one kernel or copy.
Work MemoryWork(MemoryPattern pattern, Bytes moved) {
  Work work;
  work.kind = Work::Kind::kMemory;
  work.pattern = pattern;
  work.moved = moved;
  work.launches = 1;
  return work;
}

// A product takes the host 1.9 launches of 5 us.
TEST(WorkCostTest, OpWithoutProfileIsEstimated) {
  const WorkCost cost = CostOf(OpWork(1));
  EXPECT_EQ(cost.device.ns(), 40'000);
  EXPECT_EQ(cost.host.ns(), 9'500);
  EXPECT_EQ(cost.source, Source::kEstimated);
}

// A product launches 1.5 kernels in the mean.
TEST(WorkCostTest, KernelsOfAnOpWithoutProfileHaveAGapEach) {
  Cluster cluster = TestCluster();
  cluster.gpu.gaps.kernel = Duration::FromNs(2'000);
  EXPECT_EQ(CostOf(OpWork(1), nullptr, cluster).gaps.ns(), 3'000);
  EXPECT_EQ(CostOf(OpWork(1), nullptr, cluster).device.ns(), 43'000);
  cluster.gpu.gaps.step = Duration::FromNs(1'000);
  EXPECT_EQ(CostOf(OpWork(1), nullptr, cluster).gaps.ns(), 1'500);
}

// One op of 40 us in a step that takes 36 without kernel records.
TEST(WorkCostTest, OpsTakeNoLongerThanTheStepWithoutRecords) {
  Profile profile;
  OpProfile entry;
  entry.op = OpId(1);
  entry.device_time = Duration::FromUs(40);
  profile.ops.push_back(entry);
  profile.step_time = Duration::FromUs(36);
  EXPECT_EQ(CostOf(OpWork(1), &profile).device.ns(), 36'000);
  profile.step_time = Duration::FromUs(50);
  EXPECT_EQ(CostOf(OpWork(1), &profile).device.ns(), 40'000);
}

TEST(WorkCostTest, OpWithAProfileIsMeasured) {
  Profile profile;
  OpProfile entry;
  entry.op = OpId(1);
  entry.device_time = Duration::FromNs(33'333);
  entry.host_time = Duration::FromNs(6'666);
  profile.ops.push_back(entry);
  const WorkCost cost = CostOf(OpWork(1), &profile);
  EXPECT_EQ(cost.device.ns(), 33'333);
  EXPECT_EQ(cost.host.ns(), 6'666);
  EXPECT_EQ(cost.source, Source::kMeasured);
}

// 33,333 ns, and 700 ns between each of three kernels and the next.
TEST(WorkCostTest, KernelsOfAMeasuredOpHaveAGapEach) {
  Profile profile;
  profile.kernel_gap = Duration::FromNs(700);
  profile.kernels.resize(2);
  OpProfile entry;
  entry.op = OpId(1);
  entry.device_time = Duration::FromNs(33'333);
  entry.kernels = {0, 0, 1};
  profile.ops.push_back(entry);
  EXPECT_EQ(CostOf(OpWork(1), &profile).device.ns(), 35'433);
}

// The GPU's own gap stands in for the profile's, 33,333 + 2 * 2,000 ns; before it the one of
// profiled steps, 33,333 + 2 * 1,200.
TEST(WorkCostTest, AGpusGapStandsInForAProfiles) {
  Profile profile;
  profile.kernel_gap = Duration::FromNs(700);
  profile.kernels.resize(1);
  OpProfile entry;
  entry.op = OpId(1);
  entry.device_time = Duration::FromNs(33'333);
  entry.kernels = {0, 0};
  profile.ops.push_back(entry);
  Cluster cluster = TestCluster();
  cluster.gpu.gaps.kernel = Duration::FromNs(2'000);
  EXPECT_EQ(CostOf(OpWork(1), &profile, cluster).device.ns(), 37'333);
  cluster.gpu.gaps.step = Duration::FromNs(1'200);
  EXPECT_EQ(CostOf(OpWork(1), &profile, cluster).device.ns(), 35'733);
  EXPECT_EQ(CostOf(OpWork(1), &profile, cluster).gaps.ns(), 2'400);
}

TEST(WorkCostTest, OpThatAProfileLacksIsEstimated) {
  const Profile profile;
  EXPECT_EQ(CostOf(OpWork(1), &profile).source, Source::kEstimated);
}

// 8 MB at the 8 GB/s of the link, at the 4 GB/s that all GPUs get, or at the 2 GB/s of their own.
TEST(WorkCostTest, InputsComeAsFastAsWhatIsReloaded) {
  Cluster cluster = TestCluster();
  const Work work = MemoryWork(MemoryPattern::kInputs, Bytes(8'000'000));
  EXPECT_EQ(CostOf(work, nullptr, cluster).device, Duration());
  cluster.gpu.host_bandwidth = BytesPerSecond(8'000'000'000);
  EXPECT_EQ(CostOf(work, nullptr, cluster).device, Duration::FromUs(1000));
  EXPECT_EQ(CostOf(work, nullptr, cluster).source, Source::kEstimated);
  cluster.memory_patterns = {{MemoryPattern::kReload, BytesPerSecond(4'000'000'000)}};
  EXPECT_EQ(CostOf(work, nullptr, cluster).device, Duration::FromUs(2000));
  cluster.memory_patterns.push_back({MemoryPattern::kInputs, BytesPerSecond(2'000'000'000)});
  EXPECT_EQ(CostOf(work, nullptr, cluster).device, Duration::FromUs(4000));
  EXPECT_EQ(CostOf(work, nullptr, cluster).source, Source::kMeasured);
}

// 8 MB at 4 GB/s; a share of 0.25 of it is left beside copies the other way.
TEST(WorkCostTest, CopyToTheHostTakesTheRateOfAllGpus) {
  Cluster cluster = TestCluster();
  cluster.gpu.host_bandwidth = BytesPerSecond(8'000'000'000);
  cluster.memory_patterns = {{MemoryPattern::kOffload, BytesPerSecond(4'000'000'000)}};
  cluster.host_both_ways = {0.25, 0.5};
  Work work = MemoryWork(MemoryPattern::kOffload, Bytes(8'000'000));
  const WorkCost out = CostOf(work, nullptr, cluster);
  EXPECT_EQ(out.device, Duration::FromUs(2000));
  EXPECT_EQ(out.beside_host_copy, Rate::FromPermille(250));
  EXPECT_TRUE(out.to_host);
  EXPECT_EQ(out.source, Source::kMeasured);
  work.pattern = MemoryPattern::kReload;
  const WorkCost back = CostOf(work, nullptr, cluster);
  EXPECT_EQ(back.device, Duration::FromUs(1000));
  EXPECT_EQ(back.beside_host_copy, Rate::FromPermille(500));
  EXPECT_FALSE(back.to_host);
  EXPECT_EQ(back.source, Source::kEstimated);
}

// Four launches of 5 us and eight operators of 10.5: the first launch comes behind a quarter.
TEST(WorkCostTest, CallsFromPythonComeBesideLaunches) {
  Work work = MemoryWork(MemoryPattern::kNorm, Bytes(8'000'000));
  work.launches = 4;
  work.python.operators = 8;
  const WorkCost cost = CostOf(work);
  EXPECT_EQ(cost.host, Duration::FromUs(4 * 5 + 84));
  EXPECT_EQ(cost.further, Duration::FromUs(3 * 5 + 63));
}

// Two graphs of 1.9 ms, ten nodes of 6.5 us, three modules of 375 us.
TEST(WorkCostTest, GraphsGradientsAndModulesTakeTheHost) {
  Work work;
  work.python = {.autograd_nodes = 10, .graphs = 2, .modules = 3};
  EXPECT_EQ(CostOf(work).host, Duration::FromUs(3'800 + 65 + 1'125));
  EXPECT_EQ(CostOf(work).device, Duration());
}

TEST(WorkCostTest, ViewCostsHostTimeOnly) {
  const WorkCost cost = CostOf(OpWork(0));
  EXPECT_EQ(cost.device.ns(), 0);
  EXPECT_EQ(cost.host.ns(), 1'000);
}

// 1.5e6 elements of bfloat16 are 3 MB, a point of the table: 40 us. Two calls of 8 us.
TEST(WorkCostTest, GroupOfCollectivesTakesItsSummedPayload) {
  Work work;
  work.kind = Work::Kind::kCollective;
  const WorkCost cost = CostOf(work);
  EXPECT_EQ(cost.device.ns(), 40'000);
  EXPECT_EQ(cost.host.ns(), 16'000);
  EXPECT_EQ(cost.source, Source::kMeasured);
}

// Two calls of 1 and 2 MB count as 3^2 / (1^2 + 2^2) = 1.8 alike ones: log 1.8 / log 4 = 0.424 of
// the way from the single call's 40 us to the 100 us of a group of four. The second call costs the
// host 3 us.
TEST(WorkCostTest, GroupTakesItsOwnTableAndHostTime) {
  Cluster cluster = TestCluster();
  cluster.host.grouped = Duration::FromUs(3);
  cluster.collectives.push_back(cluster.collectives[0]);
  cluster.collectives.back().calls = 4;
  cluster.collectives.back().points = {{Bytes(3'000'000), Duration::FromUs(100)}};
  Work work;
  work.kind = Work::Kind::kCollective;
  const WorkCost cost = CostOf(work, nullptr, cluster);
  EXPECT_EQ(cost.device.ns(), 65'440);
  EXPECT_EQ(cost.host.ns(), 11'000);
  EXPECT_EQ(cost.further.ns(), 0);  // launched when the group ends
  EXPECT_EQ(cost.source, Source::kInterpolated);
}

TEST(WorkCostTest, OneLaunchIsOneCallOfTheHost) {
  Work work;
  work.kind = Work::Kind::kCollective;
  work.subject = 1;
  EXPECT_EQ(CostOf(work).host.ns(), 8'000);
}

// By copy engines the calls come one after the other, a copy a rank each, behind the link's
// latency: 1 MB and 2 MB at 3/4 over 400 GB/s are 1.875 and 3.75 us, the own shards 0.5 and 1 us at
// 1 TB/s. The host's copies cost what a launch does where nothing else is said.
TEST(WorkCostTest, CopiesOfAGatherAddUp) {
  Work work;
  work.kind = Work::Kind::kCollective;
  work.subject = 2;
  const WorkCost cost = CostOf(work);
  EXPECT_EQ(cost.device.ns(), 6'000 + 1'875 + 500 + 3'750 + 1'000);
  EXPECT_EQ(cost.host.ns(), 2 * 4 * 5'000);
  EXPECT_EQ(cost.source, Source::kEstimated);
  EXPECT_EQ(cost.use, DeviceUse::kCopyEngine);
  EXPECT_EQ(cost.own_shard.ns(), 500 + 1'000);
}

// 9 MB at 1 TB/s: 9 us, and 2 us for each of the kernels behind the first. Three launches of 5 us.
TEST(WorkCostTest, MemoryWorkTakesTheBytesItMoves) {
  Work work;
  work.kind = Work::Kind::kMemory;
  work.moved = Bytes(9'000'000);
  work.launches = 3;
  const WorkCost cost = CostOf(work);
  EXPECT_EQ(cost.device.ns(), 9'000 + 2 * 2'000);
  EXPECT_EQ(cost.host.ns(), 15'000);
  EXPECT_EQ(cost.further.ns(), 10'000);
  EXPECT_EQ(cost.source, Source::kEstimated);
}

TEST(WorkCostTest, MemoryWorkTakesAtLeastItsKernels) {
  Work work;
  work.kind = Work::Kind::kMemory;
  work.moved = Bytes(1);
  work.launches = 3;
  EXPECT_EQ(CostOf(work).device.ns(), 6'000);
}

// 1 MB at 1 TB/s is half of the shortest kernel's 2 us; of three kernels a sixth.
TEST(WorkCostTest, ShortCopiesDemandLittleBandwidth) {
  Work work;
  work.kind = Work::Kind::kMemory;
  work.moved = Bytes(1'000'000);
  work.launches = 1;
  EXPECT_EQ(CostOf(work).demand, Share::FromPermille(500));
  work.launches = 3;
  EXPECT_EQ(CostOf(work).demand, Share::FromPermille(166));
  work.moved = Bytes(1'000'000'000);
  work.launches = 1;
  EXPECT_EQ(CostOf(work).demand, Share::All());
  EXPECT_EQ(CostOf(OpWork(1)).demand, Share::All());
}

// A store of which this rank owns nothing.
TEST(WorkCostTest, NoKernelTakesNoTime) {
  Work work;
  work.kind = Work::Kind::kMemory;
  EXPECT_EQ(CostOf(work).device.ns(), 0);
  EXPECT_EQ(CostOf(work).host.ns(), 0);
}

// Four events of 0.5 us on top of a product's 9.5.
TEST(WorkCostTest, EventsAddHostTime) {
  Work work = OpWork(1);
  work.events = 4;
  EXPECT_EQ(CostOf(work).host.ns(), 11'500);
}

// A product of 40 us on a rank 1.25 times as slow: 50 us; a collective and host calls as before.
TEST(WorkCostTest, StragglerSlowsItsKernelsAlone) {
  ScheduleBuilder builder(4, ScheduleOptions());
  Collective collective;
  collective.ranks = 4;
  collective.calls = {{ParamId(0), 500'000, 0}};
  builder.AddCollective(collective);
  TaskDraft draft;
  draft.work = OpWork(1);
  builder.Add(draft);
  draft.work = Work();
  draft.work.kind = Work::Kind::kCollective;
  builder.Add(draft);
  const Schedule schedule = std::move(builder).Build();
  const Graph graph = LargeProduct("bfloat16");
  Cluster slow = TestCluster();
  slow.straggler = 1.25;
  const auto before = EstimateWorks(schedule, graph, nullptr, TestCluster());
  const auto after = EstimateWorks(schedule, graph, nullptr, slow);
  EXPECT_EQ(before[0].device.ns(), 40'000);
  EXPECT_EQ(after[0].device.ns(), 50'000);
  EXPECT_EQ(after[0].host, before[0].host);
  EXPECT_GT(before[1].device.ns(), 0);
  EXPECT_EQ(after[1].device, before[1].device);
}

TEST(WorkCostTest, ASlowHostTakesItsTimesOfEveryCall) {
  ScheduleBuilder builder(1, ScheduleOptions());
  TaskDraft draft;
  draft.work = OpWork(1);
  draft.work.events = 2;
  builder.Add(draft);
  const Schedule schedule = std::move(builder).Build();
  const Graph graph = LargeProduct("bfloat16");
  Cluster slow = TestCluster();
  slow.host_slowdown = 1.5;
  const auto cost = EstimateWorks(schedule, graph, nullptr, slow).at(0);
  const auto usual = EstimateWorks(schedule, graph, nullptr, TestCluster()).at(0);
  EXPECT_EQ(cost.host.ns(), usual.host.ns() * 3 / 2);
  EXPECT_EQ(cost.device, usual.device);
}

WorkCost CollectiveAlone(const Collective& collective, const Cluster& cluster) {
  ScheduleBuilder builder(1, ScheduleOptions());
  builder.AddCollective(collective);
  TaskDraft draft;
  draft.work.kind = Work::Kind::kCollective;
  builder.Add(draft);
  const Schedule schedule = std::move(builder).Build();
  return EstimateWorks(schedule, LargeProduct("bfloat16"), nullptr, cluster).at(0);
}

/// Of a gather on one rank.
WorkCost GatherAlone(bool in_place, const Cluster& cluster = TestCluster()) {
  Collective collective;
  collective.in_place = in_place;
  collective.calls = {{ParamId(0), 500'000, 0}};
  return CollectiveAlone(collective, cluster);
}

TEST(WorkCostTest, OneRanksGatherStartsAsLateAsOthers) {
  Cluster cluster = TestCluster();
  cluster.gpu.gaps.start = Duration::FromUs(6);
  EXPECT_EQ(GatherAlone(false, cluster).start, Duration::FromUs(6));
}

// Updated weights of one rank are where their gather would put them; the host calls NCCL all the
// same.
TEST(WorkCostTest, GatherOfOneRankInPlaceMovesNothing) {
  EXPECT_GT(GatherAlone(false).device.ns(), 0);
  EXPECT_EQ(GatherAlone(true).device.ns(), 0);
  EXPECT_EQ(GatherAlone(true).host, GatherAlone(false).host);
}

// A megabyte read and written in 2.5 us at 0.8 TB/s, and 5 us more for each further copy.
TEST(WorkCostTest, CopiesOfOneRankTakeFromOthersWhileBytesMove) {
  Cluster cluster = TestCluster();
  cluster.gpu.gaps.memory = Duration::FromUs(5);
  Collective collective;
  collective.calls = {{ParamId(0), 500'000, 0}};
  EXPECT_EQ(CollectiveAlone(collective, cluster).demand, Share::All());
  const Duration alone = CollectiveAlone(collective, cluster).device;
  collective.calls = {{ParamId(0), 250'000, 0}, {ParamId(1), 250'000, 250'000}};
  const WorkCost two = CollectiveAlone(collective, cluster);
  EXPECT_EQ(two.device, alone + Duration::FromUs(5));
  EXPECT_EQ(two.demand, Share::Of(alone.ns(), two.device.ns()));
}

// 8 us a call; the second one's copy is launched by itself.
TEST(WorkCostTest, OneRanksGroupStartsWithItsFirstCall) {
  Collective collective;
  collective.calls = {{ParamId(0), 500'000, 0}, {ParamId(1), 500'000, 500'000}};
  const WorkCost cost = CollectiveAlone(collective, TestCluster());
  EXPECT_EQ(cost.host.ns(), 16'000);
  EXPECT_EQ(cost.further.ns(), 8'000);
  EXPECT_EQ(cost.launches, 2);
  collective.ranks = 2;
  EXPECT_EQ(CollectiveAlone(collective, TestCluster()).launches, 1) << "one kernel of NCCL";
}

// A bucket that is reduced as one gets each rank's sum in its own part.
TEST(WorkCostTest, OneRanksBucketReducedAsOneMovesNothing) {
  Collective collective;
  collective.kind = CollectiveKind::kReduceScatter;
  collective.calls = {{ParamId(0), 500'000, 0}};
  EXPECT_GT(CollectiveAlone(collective, TestCluster()).device.ns(), 0);
  collective.one_launch = true;
  EXPECT_EQ(CollectiveAlone(collective, TestCluster()).device.ns(), 0);
}

/// The flattening of gradients of 102,400 and 1,024 elements, 413,696 bytes read and written, by
/// two kernels.
WorkCost Flattened(const Cluster& cluster, bool concatenates = true) {
  const Graph graph = ParseGraphText(R"(
graph g 1 tokens
param a bfloat16[102400]
param b bfloat16[1024]
forward
  l: float32[] = my::loss(a, b)
  loss l
backward
  tangent t: float32[] of l
  ga: bfloat16[102400] = my::grad(t)
  gb: bfloat16[1024] = my::grad(t)
  gradient a = ga
  gradient b = gb
)");
  ScheduleOptions options;
  options.stage = 2;
  ScheduleBuilder builder(2, options);
  Collective collective;
  collective.kind = CollectiveKind::kAllReduce;
  collective.ranks = 2;
  collective.calls = {{ParamId(0), 102'400, 0}, {ParamId(1), 1'024, 102'400}};
  TaskDraft draft;
  draft.work.kind = Work::Kind::kMemory;
  draft.work.subject = static_cast<std::uint32_t>(builder.AddCollective(collective).index());
  draft.work.moved = Bytes(413'696);
  draft.work.launches = 2;
  draft.work.concatenates = concatenates;
  builder.Add(draft);
  const Schedule schedule = std::move(builder).Build();
  return EstimateWorks(schedule, graph, nullptr, cluster).at(0);
}

// A start of 1 us, the bytes at 1 TB/s, 99 thread blocks without work of 1 ns each
// (ConcatenationTest); two launches and two views of the host.
TEST(WorkCostTest, FlatteningCostsWhatAtCatDoes) {
  Cluster cluster = TestCluster();
  cluster.gpu = GpuWithKernels();
  cluster.memory_patterns = {{MemoryPattern::kCopy, BytesPerSecond(1'000'000'000'000)}};
  const WorkCost cost = Flattened(cluster);
  EXPECT_EQ(cost.device.ns(), 1'513);
  EXPECT_EQ(cost.host, cluster.host.launch * 2 + cluster.host.view * 2);
  EXPECT_EQ(cost.demand, Share::Of(414, 1'513));
  EXPECT_EQ(Flattened(cluster, false).device,
            cluster.gpu.shortest_kernel + cluster.gpu.memory_pace());
}

// Without `kernels` in the GPU file it is a copy like others.
TEST(WorkCostTest, FlatteningIsACopyWhereNoKernelIsKnown) {
  EXPECT_EQ(Flattened(TestCluster()).device, Flattened(TestCluster(), false).device);
}

TEST(WorkCostTest, UnevenOptimizersHaveTheRateOfEvenOnesWithoutTheirOwn) {
  Cluster cluster = TestCluster();
  cluster.memory_patterns = {{MemoryPattern::kAdamW, BytesPerSecond(2'000'000'000'000)}};
  const Work work = MemoryWork(MemoryPattern::kAdamWUneven, Bytes(2'000'000'000));
  EXPECT_EQ(CostOf(work, nullptr, cluster).device, Duration::FromUs(1000));
  cluster.memory_patterns.push_back(
      {MemoryPattern::kAdamWUneven, BytesPerSecond(1'000'000'000'000)});
  EXPECT_EQ(CostOf(work, nullptr, cluster).device, Duration::FromUs(2000));
}

// Fused kernels that nobody measured take as long for their bytes as torch's AdamW does.
TEST(WorkCostTest, OtherOptimizersAreEstimatedAtTheRateOfAdamW) {
  Cluster cluster = TestCluster();
  cluster.memory_patterns = {{MemoryPattern::kAdamW, BytesPerSecond(2'000'000'000'000)},
                             {MemoryPattern::kAdamWUneven, BytesPerSecond(1'000'000'000'000)}};
  const auto cost = [&cluster](MemoryPattern pattern) {
    return CostOf(MemoryWork(pattern, Bytes(2'000'000'000)), nullptr, cluster);
  };
  EXPECT_EQ(cost(MemoryPattern::kAdamW).source, Source::kMeasured);
  EXPECT_EQ(cost(MemoryPattern::kFusedUpdate).device, Duration::FromUs(1000));
  EXPECT_EQ(cost(MemoryPattern::kFusedUpdate).source, Source::kEstimated);
  EXPECT_EQ(cost(MemoryPattern::kFusedUpdateUneven).device, Duration::FromUs(2000));
  EXPECT_EQ(cost(MemoryPattern::kFusedUpdateUneven).source, Source::kEstimated);
  cluster.memory_patterns.push_back(
      {MemoryPattern::kFusedUpdate, BytesPerSecond(1'000'000'000'000)});
  EXPECT_EQ(cost(MemoryPattern::kFusedUpdate).device, Duration::FromUs(2000));
  EXPECT_EQ(cost(MemoryPattern::kFusedUpdate).source, Source::kMeasured);
}

// Whatever pattern, and gradients that at::cat brings together, too.
TEST(WorkCostTest, MemoryWorkStartsAfterTheEventThatLetsIt) {
  Cluster cluster = TestCluster();
  const Work work = MemoryWork(MemoryPattern::kScale, Bytes(1'000'000));
  EXPECT_EQ(CostOf(work, nullptr, cluster).start, Duration());
  cluster.gpu = GpuWithKernels();
  cluster.gpu.gaps.start = Duration::FromUs(6);
  EXPECT_EQ(CostOf(work, nullptr, cluster).start, Duration::FromUs(6));
  EXPECT_EQ(Flattened(cluster).start, Duration::FromUs(6));
}

TEST(WorkCostTest, NoWorkCostsNothing) {
  EXPECT_EQ(CostOf(Work()).device.ns(), 0);
  EXPECT_EQ(CostOf(Work()).host.ns(), 0);
}

TEST(WorkCostTest, CostsAreByWork) {
  ScheduleBuilder builder(4, ScheduleOptions());
  TaskDraft draft;
  draft.work = OpWork(1);
  builder.Add(draft);
  builder.Add(draft);
  draft.work = OpWork(0);
  builder.Add(draft);
  const auto costs =
      EstimateWorks(std::move(builder).Build(), LargeProduct("bfloat16"), nullptr, TestCluster());
  ASSERT_EQ(costs.size(), 2U);
  EXPECT_EQ(costs[0].device.ns(), 40'000);
  EXPECT_EQ(costs[1].host.ns(), 1'000);
}

}  // namespace
}  // namespace dcsim
