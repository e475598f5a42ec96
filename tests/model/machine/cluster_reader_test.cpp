#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/cost/kernel_models.h"
#include "tests/model/cost/kernels_document.h"
#include "tests/model/machine/cluster_document.h"
#include "tests/support/error_text.h"
#include "tests/support/row_name.h"
#include "tests/support/source_folder.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

TEST(ClusterReaderTest, KernelsAreRead) {
  Json document = ClusterDocument();
  document["gpu"]["kernels"] = KernelsDocument();
  const KernelRates kernels =
      *ReadCluster(document, PointerLocator("c"), kKernelRatesReader).gpu.kernels;
  EXPECT_EQ(kernels.elements_per_second.permuted, 2e11);
  EXPECT_EQ(kernels.reduction.part, Duration::FromNs(50));
  EXPECT_EQ(kernels.layer_norm_backward.columns_per_second, 2e8);
  EXPECT_EQ(kernels.product.tile, 20);
  EXPECT_EQ(kernels.attention_backward.head_sums, 0.3);
  EXPECT_EQ(kernels.group_norm_backward.start, Duration::FromUs(25));
  EXPECT_EQ(kernels.batch_norm_backward.apart_per_second, 4e10);
  EXPECT_EQ(kernels.convolution.unaligned_weight.lone_channel, 1e5);
  EXPECT_EQ(kernels.pooling.backward, 3e11);
  EXPECT_EQ(kernels.batch_norm_backward.cached_round, Duration::FromNs(200));
  EXPECT_EQ(kernels.convolution.planar_depthwise_backward.tap, 0.5);
  EXPECT_EQ(kernels.convolution.backward_pass, Duration::FromUs(10));
  EXPECT_EQ(kernels.concatenation.blocks_per_second, 2e9);
  EXPECT_EQ(kernels.product.unaligned_transposed, 0.08);
  EXPECT_EQ(kernels.cudnn_attention.wide_masked, 3);
  EXPECT_EQ(kernels.cudnn_attention_backward.pair_head, Duration::FromNs(500));
  EXPECT_EQ(kernels.cudnn_attention_backward.head_sums, 0.6);
}

Json TritonDocument() {
  return {{"pointwise", 0.9},
          {"tiles", 0.8},
          {"reduction", 0.7},
          {"outer_reduction", 0.6},
          {"persistent_reduction", 0.5},
          {"mixed_reduction", 0.4},
          {"full_threads", 0.25},
          {"trigonometric_per_second", 5e11},
          {"error_functions_per_second", 6e11},
          {"exponentials_per_second", 7e11},
          {"online_softmax_per_second", 8e11},
          {"start", "1 us"},
          {"source", "made up"}};
}

TEST(ClusterReaderTest, TritonIsReadWithoutKernels) {
  Json document = ClusterDocument();
  EXPECT_EQ(ReadCluster(document, PointerLocator("c"), kKernelRatesReader).gpu.triton, nullptr);
  document["gpu"]["triton"] = TritonDocument();
  const GpuSpec gpu = ReadCluster(document, PointerLocator("c"), kKernelRatesReader).gpu;
  ASSERT_NE(gpu.triton, nullptr);
  EXPECT_EQ(gpu.kernels, nullptr);
  EXPECT_EQ(gpu.triton->outer_reduction, 0.6);
  EXPECT_EQ(gpu.triton->online_softmax_per_second, 8e11);
  EXPECT_EQ(gpu.triton->start, Duration::FromUs(1));
}

TEST(ClusterReaderTest, MachinesAreRead) {
  const Cluster cluster = TestCluster();
  EXPECT_EQ(cluster.name, "test");
  EXPECT_EQ(cluster.nodes, 2);
  EXPECT_EQ(cluster.gpus_per_node, 4);
  EXPECT_EQ(cluster.gpus(), 8);
}

TEST(ClusterReaderTest, GpuIsRead) {
  const GpuSpec gpu = TestCluster().gpu;
  EXPECT_EQ(gpu.memory, Bytes::GiB(80));
  EXPECT_EQ(gpu.outside_allocator, Bytes::GiB(1));
  EXPECT_EQ(gpu.memory_bandwidth, BytesPerSecond(2'000'000'000'000));
  EXPECT_EQ(gpu.multiprocessors, 100);
  EXPECT_EQ(gpu.matmul_efficiency, 0.5);
  EXPECT_EQ(gpu.attention_efficiency, 0.25);
  EXPECT_EQ(gpu.attention_backward_efficiency, 0.125);
  EXPECT_EQ(gpu.bandwidth_efficiency, 0.5);
  EXPECT_EQ(gpu.shortest_kernel, Duration::FromUs(2));
  EXPECT_THAT(gpu.workspaces, testing::ElementsAre(Bytes::MiB(32), Bytes::MiB(8)));
}

TEST(ClusterReaderTest, MatmulPeaksAreByDType) {
  const GpuSpec gpu = TestCluster().gpu;
  EXPECT_EQ(gpu.MatmulFlops(DType::kBFloat16), 1e15);
  EXPECT_EQ(gpu.MatmulFlops(DType::kFloat32), 1e14);
  EXPECT_EQ(gpu.MatmulFlops(DType::kFloat64), 0);
}

TEST(ClusterReaderTest, HostCostsAreRead) {
  const HostCosts host = TestCluster().host;
  EXPECT_EQ(host.view, Duration::FromUs(1));
  EXPECT_EQ(host.launch, Duration::FromUs(5));
  EXPECT_EQ(host.collective, Duration::FromUs(8));
  EXPECT_EQ(host.event, Duration::FromNs(500));
  EXPECT_EQ(host.synchronize, Duration::FromUs(10));
  EXPECT_EQ(host.segment, Duration::FromUs(200));
  EXPECT_EQ(host.launch_queue, 1022) << "CUDA's own";
}

// Of a launch, where the file does not say.
TEST(ClusterReaderTest, AllocatorEventsOfTheHostAreOptional) {
  Json document = ClusterDocument();
  const auto host = [&] {
    return ReadCluster(document, PointerLocator("c"), kKernelRatesReader).host;
  };
  EXPECT_EQ(host().record, Duration::FromNs(400));
  EXPECT_EQ(host().take_back, Duration::FromNs(1200));
  document["host"]["record"] = "2 us";
  document["host"]["take_back"] = "3 us";
  EXPECT_EQ(host().record, Duration::FromUs(2));
  EXPECT_EQ(host().take_back, Duration::FromUs(3));
}

TEST(ClusterReaderTest, PythonOfTheHostIsOptional) {
  Json document = ClusterDocument();
  const auto host = [&] {
    return ReadCluster(document, PointerLocator("c"), kKernelRatesReader).host;
  };
  EXPECT_EQ(host().python_operator, Duration::FromNs(10'500));
  EXPECT_EQ(host().autograd_node, Duration::FromNs(6'500));
  EXPECT_EQ(host().compiled_graph, Duration::FromUs(1'900));
  EXPECT_EQ(host().module_hooks, Duration::FromUs(375));
  document["host"].update({{"python_operator", "2 us"},
                           {"autograd_node", "3 us"},
                           {"compiled_graph", "4 ms"},
                           {"module_hooks", "5 us"}});
  EXPECT_EQ(host().module_hooks, Duration::FromUs(5));
  EXPECT_EQ(host().python_operator, Duration::FromUs(2));
  EXPECT_EQ(host().autograd_node, Duration::FromUs(3));
  EXPECT_EQ(host().compiled_graph, Duration::FromUs(4'000));
}

TEST(ClusterReaderTest, FirstCallsOfTheHostAreOptional) {
  Json document = ClusterDocument();
  const auto host = [&] {
    return ReadCluster(document, PointerLocator("c"), kKernelRatesReader).host;
  };
  EXPECT_EQ(host().first_call, Duration::FromUs(13'000));
  EXPECT_EQ(host().first_collective, Duration::FromUs(80'000));
  document["host"]["first_call"] = "5 ms";
  document["host"]["first_collective"] = "6 ms";
  EXPECT_EQ(host().first_call, Duration::FromUs(5'000));
  EXPECT_EQ(host().first_collective, Duration::FromUs(6'000));
}

TEST(ClusterReaderTest, WorkspaceOfProductsWithABiasIsOptional) {
  Json document = ClusterDocument();
  EXPECT_THAT(ReadCluster(document, PointerLocator("c"), kKernelRatesReader).gpu.bias_workspaces,
              testing::IsEmpty());
  document["gpu"]["bias_workspace"] = "1 MiB";
  EXPECT_THAT(ReadCluster(document, PointerLocator("c"), kKernelRatesReader).gpu.bias_workspaces,
              testing::ElementsAre(Bytes::MiB(1)));
}

TEST(ClusterReaderTest, LaunchQueueIsOptional) {
  Json document = ClusterDocument();
  document["host"]["launch_queue"] = 500;
  EXPECT_EQ(ReadCluster(document, PointerLocator("c"), kKernelRatesReader).host.launch_queue, 500);
}

// What a person writes by hand: machines, a GPU, links. The host is that of the committed clusters.
TEST(ClusterReaderTest, HandWrittenClusterNeedsNoMeasurements) {
  Json document = ClusterDocument();
  for (const char* key : {"host", "measured", "collectives"}) {
    document.erase(key);
  }
  document["gpu"].erase("source");
  document["gpu"]["gaps"] = {{"collective", "18 us"}};
  const Cluster cluster = ReadCluster(document, PointerLocator("c"), kKernelRatesReader);
  EXPECT_TRUE(cluster.collectives.empty());
  EXPECT_EQ(cluster.host.launch, Duration::FromNs(4'900));
  EXPECT_EQ(cluster.host.copy, cluster.host.launch);
  EXPECT_EQ(cluster.host.launch_queue, 1022);
}

TEST(ClusterReaderTest, TableOfSeveralNodesSaysSo) {
  Json document = ClusterDocument();
  Json over_nodes = document["collectives"][0];
  over_nodes["nodes"] = 2;
  document["collectives"].push_back(over_nodes);
  const auto tables = ReadCluster(document, PointerLocator("c"), kKernelRatesReader).collectives;
  ASSERT_EQ(tables.size(), 3U);
  EXPECT_EQ(tables[0].nodes, 1);
  EXPECT_EQ(tables[2].nodes, 2);
}

TEST(ClusterReaderTest, CopiesBothWaysDoNotDisturbEachOtherUnlessItIsSaid) {
  Json document = ClusterDocument();
  EXPECT_EQ(ReadCluster(document, PointerLocator("c"), kKernelRatesReader).host_both_ways.reload,
            1);
  document["host_both_ways"] = {{"offload", 0.75}, {"reload", 0.5}};
  const HostBothWays left =
      ReadCluster(document, PointerLocator("c"), kKernelRatesReader).host_both_ways;
  EXPECT_EQ(left.offload, 0.75);
  EXPECT_EQ(left.reload, 0.5);
}

TEST(ClusterReaderTest, MemoryOfCommunicatorsIsOptional) {
  Json document = ClusterDocument();
  EXPECT_EQ(
      ReadCluster(document, PointerLocator("c"), kKernelRatesReader).communicator_memory.first,
      Bytes(0));
  document["communicator_memory"] = {
      {"first", "92 MiB"}, {"all_reduce", "28 MiB"}, {"second", "288 MiB"}};
  const CommunicatorMemory memory =
      ReadCluster(document, PointerLocator("c"), kKernelRatesReader).communicator_memory;
  EXPECT_EQ(memory.first, Bytes::MiB(92));
  EXPECT_EQ(memory.all_reduce, Bytes::MiB(28));
  EXPECT_EQ(memory.second, Bytes::MiB(288));
}

TEST(ClusterReaderTest, LinksAreRead) {
  const Cluster cluster = TestCluster();
  EXPECT_EQ(cluster.intra_node.bus_bandwidth, BytesPerSecond(400'000'000'000));
  EXPECT_EQ(cluster.intra_node.latency, Duration::FromUs(6));
  EXPECT_EQ(cluster.intra_node.hop_latency, Duration::FromUs(1));
  ASSERT_TRUE(cluster.inter_node);
  EXPECT_EQ(cluster.inter_node->latency, Duration::FromUs(10));
}

TEST(ClusterReaderTest, TablesAreRead) {
  const auto tables = TestCluster().collectives;
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(tables[0].ranks, 4);
  ASSERT_EQ(tables[0].points.size(), 3U);
  EXPECT_EQ(tables[0].points[1].payload, Bytes(3'000'000));
  EXPECT_EQ(tables[0].points[1].time, Duration::FromUs(40));
  EXPECT_EQ(tables[1].kind, CollectiveKind::kReduceScatter);
}

TEST(ClusterReaderTest, CopyEnginesAreRead) {
  EXPECT_FALSE(TestCluster().copy_engines.has_value());
  Json document = ClusterDocument();
  document["copy_engines"] = {{"start", "3 us"}, {"copy", "2 us"}, {"rate", "380 GB/s"}};
  EXPECT_EQ(ReadCluster(document, PointerLocator("c"), kKernelRatesReader).copy_engines->crowding,
            0);
  document["copy_engines"]["crowding"] = 0.75;
  const auto engines = ReadCluster(document, PointerLocator("c"), kKernelRatesReader).copy_engines;
  ASSERT_TRUE(engines.has_value());
  EXPECT_EQ(engines->start, Duration::FromUs(3));
  EXPECT_EQ(engines->copy, Duration::FromUs(2));
  EXPECT_EQ(engines->rate, BytesPerSecond(380'000'000'000));
  EXPECT_EQ(engines->crowding, 0.75);
}

TEST(ClusterReaderTest, DocumentIsKeptWhole) {
  EXPECT_EQ(TestCluster().document, ClusterDocument());
}

TEST(ClusterReaderTest, WithoutContentionNothingDisturbs) {
  const GpuSpec gpu = TestCluster().gpu;
  EXPECT_FALSE(gpu.contention.measured);
  EXPECT_FALSE(gpu.gaps.kernel);
  EXPECT_EQ(gpu.gaps.collective, Duration());
}

TEST(ClusterReaderTest, ContentionIsRead) {
  Json document = ClusterDocument();
  document["gpu"]["contention"] = {{"matmul", {{"collective", 0.68}}}, {"source", "made up"}};
  document["gpu"]["gaps"] = {
      {"kernel", "2 us"}, {"step", "1 us"}, {"collective", "18 us"}, {"source", "made up"}};
  const GpuSpec gpu = ReadCluster(document, PointerLocator("c"), kKernelRatesReader).gpu;
  EXPECT_TRUE(gpu.contention.measured);
  EXPECT_EQ(gpu.contention.RateOf(DeviceUse::kMatmul, DeviceUse::kCollective),
            Rate::FromPermille(680));
  EXPECT_EQ(gpu.contention.RateOf(DeviceUse::kCollective, DeviceUse::kMatmul), Rate());
  EXPECT_EQ(gpu.gaps.kernel, Duration::FromUs(2));
  EXPECT_EQ(gpu.gaps.step, Duration::FromUs(1));
  EXPECT_EQ(gpu.gaps.collective, Duration::FromUs(18));
  EXPECT_FALSE(gpu.gaps.queued);
  EXPECT_FALSE(gpu.gaps.start);
  EXPECT_FALSE(gpu.contention.idle_wait);
  EXPECT_EQ(gpu.contention.collective_multiprocessors, 0);
  EXPECT_EQ(gpu.contention.copy_multiprocessors, 0);
  EXPECT_EQ(gpu.contention.comes_first, Share());
}

TEST(ClusterReaderTest, DelaysByWaitingStreamsAreRead) {
  Json document = ClusterDocument();
  document["gpu"]["gaps"] = {
      {"waiting", {{"copy", "350 ns"}}}, {"waiting_of_ops", 1.25}, {"source", "made up"}};
  WaitingDelays expected{};
  expected[static_cast<std::size_t>(StreamRole::kCopy)] = Duration::FromNs(350);
  const DeviceGaps gaps = ReadCluster(document, PointerLocator("c"), kKernelRatesReader).gpu.gaps;
  EXPECT_EQ(gaps.waiting, expected);
  EXPECT_EQ(gaps.waiting_of_ops, 1.25);
  document["gpu"]["gaps"]["waiting"] = {{"gahter", "1 us"}};
  document["gpu"]["gaps"]["waiting_of_ops"] = 0;
  EXPECT_EQ(ErrorText([&] { ReadCluster(document, PointerLocator("c"), kKernelRatesReader); }),
            "c: /gpu/gaps/waiting/gahter: unknown key 'gahter', did you mean 'gather'?\n"
            "c: /gpu/gaps/waiting_of_ops: expected a factor from 0.1 to 10");
}

/// `beside_memory` of two ranks.
Json BesideMemoryOf(const std::vector<std::pair<std::string, double>>& points) {
  Json list = Json::array();
  for (const auto& [payload, longer] : points) {
    list.push_back(Json::array({payload, longer}));
  }
  return {{"cache", "50 MiB"},
          {"copy_engine", 0.3},
          {"tables", Json::array({{{"ranks", 2}, {"start", "5 us"}, {"longer", list}}})}};
}

// A collective that compute waits for meets ranks that are 2 us and a hundredth of the time that
// passes apart, but never more than 500.
TEST(ClusterReaderTest, LawsOfContentionAreRead) {
  Json document = ClusterDocument();
  document["collective_channels"] = 24;
  document["gpu"]["gaps"] = {
      {"queued", "10 us"}, {"start", "6 us"}, {"memory", "2 us"}, {"source", "made up"}};
  document["gpu"]["contention"] = {
      {"collective_multiprocessors", 40},
      {"copy_multiprocessors", 60},
      {"streaming_kernel", "3 us"},
      {"crowded_kernel", "4 us"},
      {"beside_memory", BesideMemoryOf({{"16 MiB", 1.2}, {"64 MiB", 0.4}})},
      {"side_kernels", {{"later", "6 us"}, {"between", "15 us"}}},
      {"collective_start", "8 us"},
      {"to_host", 0.9},
      {"ranks_apart", {{"idle", "2 us"}, {"rate", 0.01}, {"most", "500 us"}}},
      {"comes_first", {{"share", 0.4}, {"delay", "7 us"}}},
      {"source", "made up"}};
  const Cluster cluster = ReadCluster(document, PointerLocator("c"), kKernelRatesReader);
  const Contention& contention = cluster.gpu.contention;
  EXPECT_EQ(cluster.gpu.gaps.queued, Duration::FromUs(10));
  EXPECT_EQ(cluster.gpu.gaps.start, Duration::FromUs(6));
  EXPECT_EQ(cluster.gpu.gaps.memory, Duration::FromUs(2));
  EXPECT_EQ(cluster.collective_channels, 24);
  EXPECT_EQ(contention.collective_multiprocessors, 40);
  EXPECT_EQ(contention.copy_multiprocessors, 60);
  EXPECT_EQ(contention.streaming_kernel, Duration::FromUs(3));
  EXPECT_EQ(contention.crowded_kernel, Duration::FromUs(4));
  ASSERT_TRUE(contention.beside_memory.has_value());
  EXPECT_EQ(contention.beside_memory->cache, Bytes::MiB(50));
  EXPECT_EQ(contention.LongerBesideMemory(Bytes::MiB(32), 2), Longer::FromPermille(800));
  EXPECT_EQ(contention.GatherLongerBesideMemory(2), Longer::FromPermille(300));
  EXPECT_EQ(contention.GatherLongerBesideMemory(1), Longer()) << "nothing to read from others";
  EXPECT_EQ(contention.CollectiveStart(2), Duration::FromUs(5));
  ASSERT_TRUE(contention.side_kernels.has_value());
  EXPECT_EQ(contention.side_kernels->later, Duration::FromUs(6));
  EXPECT_EQ(contention.side_kernels->between, Duration::FromUs(15));
  EXPECT_EQ(contention.collective_start, Duration::FromUs(8));
  EXPECT_EQ(contention.to_host, Rate::FromPermille(900));
  EXPECT_EQ(contention.IdleWait(Duration::FromUs(300)), Duration::FromUs(5));
  EXPECT_EQ(contention.IdleWait(Duration::FromUs(90'000)), Duration::FromUs(500));
  EXPECT_EQ(contention.comes_first, Share::FromPermille(400));
  EXPECT_EQ(contention.first_delay, Duration::FromUs(7));
}

TEST(ClusterReaderTest, GathersOfShiftedShardsAreRead) {
  EXPECT_FALSE(TestCluster().shifted_shard_gathers.has_value());
  Json document = ClusterDocument();
  document["shifted_shard_gathers"] = {{"above", "2 MiB"}, {"start", "9 us"}, {"times", 1.2}};
  const auto gathers =
      ReadCluster(document, PointerLocator("c"), kKernelRatesReader).shifted_shard_gathers;
  ASSERT_TRUE(gathers.has_value());
  EXPECT_EQ(gathers->above, Bytes::MiB(2));
  EXPECT_EQ(gathers->start, Duration::FromUs(9));
  EXPECT_EQ(gathers->times, 1.2);
}

TEST(ClusterReaderTest, StragglerIsRead) {
  EXPECT_EQ(TestCluster().straggler, 1);
  Json document = ClusterDocument();
  document["straggler"] = 1.05;
  EXPECT_EQ(ReadCluster(document, PointerLocator("c"), kKernelRatesReader).straggler, 1.05);
}

// The host that was measured may have been the slow one.
TEST(ClusterReaderTest, HostSlowdownIsRead) {
  EXPECT_EQ(TestCluster().host_slowdown, 1);
  Json document = ClusterDocument();
  document["host_slowdown"] = 0.8;
  EXPECT_EQ(ReadCluster(document, PointerLocator("c"), kKernelRatesReader).host_slowdown, 0.8);
}

Json PowerDocument() {
  return {{"limit_watts", 700},
          {"idle_watts", 100},
          {"highest_mhz", 2000},
          {"profiled_mhz", 1900},
          {"exponent", 2},
          {"watts", {{"matmul", 900}, {"copy_engine", 50}}},
          {"slows", {{"matmul", 0.5}}},
          {"source", "made up"}};
}

TEST(ClusterReaderTest, PowerIsRead) {
  EXPECT_FALSE(TestCluster().gpu.power);
  EXPECT_EQ(TestCluster().straggler_power, 1);
  Json document = ClusterDocument();
  document["gpu"]["power"] = PowerDocument();
  document["straggler_power"] = 1.1;
  document["power_limit_watts"] = 500;
  const Cluster cluster = ReadCluster(document, PointerLocator("c"), kKernelRatesReader);
  ASSERT_TRUE(cluster.gpu.power);
  const PowerModel& power = *cluster.gpu.power;
  EXPECT_EQ(cluster.straggler_power, 1.1);
  EXPECT_EQ(cluster.power_limit_watts, 500);
  EXPECT_EQ(power.limit_watts, 700);
  EXPECT_EQ(power.idle_watts, 100);
  EXPECT_EQ(power.highest_mhz, 2000);
  EXPECT_EQ(power.profiled_mhz, 1900);
  EXPECT_EQ(power.exponent, 2);
  EXPECT_EQ(power.watts[static_cast<std::size_t>(DeviceUse::kMatmul)], 900);
  EXPECT_EQ(power.watts[static_cast<std::size_t>(DeviceUse::kCopyEngine)], 50);
  EXPECT_EQ(power.watts[static_cast<std::size_t>(DeviceUse::kStreaming)], 0);
  EXPECT_EQ(power.slows[static_cast<std::size_t>(DeviceUse::kMatmul)], 0.5);
}

TEST(ClusterReaderTest, OneNodeNeedsNoLinkBetweenNodes) {
  Json document = ClusterDocument();
  document["nodes"] = 1;
  document.erase("inter_node");
  EXPECT_FALSE(ReadCluster(document, PointerLocator("c"), kKernelRatesReader).inter_node);
}

struct Break {
  const char* name;
  void (*change)(Json& document);
  const char* message;
};

class ClusterFaultTest : public testing::TestWithParam<Break> {};

TEST_P(ClusterFaultTest, IsReported) {
  Json document = ClusterDocument();
  GetParam().change(document);
  EXPECT_EQ(ErrorText([&] { ReadCluster(document, PointerLocator("c"), kKernelRatesReader); }),
            GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Machines,
    ClusterFaultTest,
    testing::Values(
        Break{"Format", [](Json& d) { d["format"] = "dc-gpu/1"; },
              "c: /format: expected a document with \"format\": \"dc-cluster/1\", found "
              "\"dc-gpu/1\""},
        Break{"NoName", [](Json& d) { d.erase("name"); }, "c: key 'name' is missing"},
        Break{"NoNodes", [](Json& d) { d["nodes"] = 0; },
              "c: /nodes: expected a count from 1 to 1000000"},
        Break{"TooManyGpus", [](Json& d) { d["gpus_per_node"] = 1000001; },
              "c: /gpus_per_node: expected a count from 1 to 1000000"},
        Break{"NodesWithoutLink", [](Json& d) { d.erase("inter_node"); },
              "c: key 'inter_node' is missing; a cluster of several nodes needs it"},
        Break{"StoppedLink", [](Json& d) { d["intra_node"]["bus_bandwidth"] = "0 GB/s"; },
              "c: /intra_node/bus_bandwidth: expected more than 0"},
        Break{"LatencyWithoutUnit", [](Json& d) { d["inter_node"]["latency"] = 10; },
              "c: /inter_node/latency: expected a time with a unit such as \"4.9 us\", found 10"},
        Break{"FrugalStraggler", [](Json& d) { d["straggler_power"] = 0.9; },
              "c: /straggler_power: expected how many times the profiled GPU's energy one GPU "
              "needs, from 1 to 10"},
        Break{"LimitWithoutPower", [](Json& d) { d["power_limit_watts"] = 500; },
              "c: /power_limit_watts: the GPU file has no power, so what a limit does is not "
              "known"},
        Break{"LimitBelowIdle",
              [](Json& d) {
                d["gpu"]["power"] = PowerDocument();
                d["power_limit_watts"] = 100;
              },
              "c: /power_limit_watts: expected more than the GPU file's power.idle_watts and at "
              "most its power.limit_watts"},
        Break{"LimitAboveTheGpus",
              [](Json& d) {
                d["gpu"]["power"] = PowerDocument();
                d["power_limit_watts"] = 701;
              },
              "c: /power_limit_watts: expected more than the GPU file's power.idle_watts and at "
              "most its power.limit_watts"},
        Break{"PowerOfNothing",
              [](Json& d) {
                d["gpu"]["power"] = PowerDocument();
                d["gpu"]["power"].erase("highest_mhz");
              },
              "c: /gpu/power: key 'highest_mhz' is missing"},
        Break{"IdleAboveTheLimit",
              [](Json& d) {
                d["gpu"]["power"] = PowerDocument();
                d["gpu"]["power"]["idle_watts"] = 700;
              },
              "c: /gpu/power/idle_watts: expected less than limit_watts"},
        Break{"ProfiledAboveTheHighest",
              [](Json& d) {
                d["gpu"]["power"] = PowerDocument();
                d["gpu"]["power"]["profiled_mhz"] = 2001;
              },
              "c: /gpu/power/profiled_mhz: expected highest_mhz at most"},
        Break{"WattsOfAnUnknownUse",
              [](Json& d) {
                d["gpu"]["power"] = PowerDocument();
                d["gpu"]["power"]["watts"]["matmull"] = 1;
              },
              "c: /gpu/power/watts/matmull: unknown key 'matmull', did you mean 'matmul'?"},
        Break{"NegativeWatts",
              [](Json& d) {
                d["gpu"]["power"] = PowerDocument();
                d["gpu"]["power"]["watts"]["matmul"] = -1;
              },
              "c: /gpu/power/watts/matmul: expected 0 or more"},
        Break{"FastStraggler", [](Json& d) { d["straggler"] = 0.9; },
              "c: /straggler: expected how many times as long one rank's kernels take, from 1 to "
              "100"},
        Break{"FastHost", [](Json& d) { d["host_slowdown"] = 0.05; },
              "c: /host_slowdown: expected how many times as long the host's calls take, from 0.1 "
              "to 100"},
        Break{"UnknownKey", [](Json& d) { d["intranode"] = 1; },
              "c: /intranode: unknown key 'intranode', did you mean 'intra_node'?"},
        Break{"HostTimeWithoutUnit", [](Json& d) { d["host"]["segment"] = 200; },
              "c: /host/segment: expected a time with a unit such as \"4.9 us\", found 200"},
        Break{"MoreNodesThanRanks", [](Json& d) { d["collectives"][0]["nodes"] = 5; },
              "c: /collectives/0/nodes: expected a node for each rank at most"},
        Break{"NoLaunchQueue", [](Json& d) { d["host"]["launch_queue"] = 0; },
              "c: /host/launch_queue: expected a count from 1 to 1000000"},
        Break{"LongCall", [](Json& d) { d["host"]["launch"] = "1.1 s"; },
              "c: /host/launch: expected at most 1 s"},
        Break{"LongCollective",
              [](Json& d) { d["collectives"][0]["points"][0][1] = "9000000000 s"; },
              "c: /collectives/0/points/0/1: expected at most 3600 s"},
        Break{"FastLink", [](Json& d) { d["intra_node"]["bus_bandwidth"] = "2000000 TB/s"; },
              "c: /intra_node/bus_bandwidth: expected at most 1000000 TB/s"},
        Break{"LargeGpu", [](Json& d) { d["gpu"]["memory"] = "2000000 TiB"; },
              "c: /gpu/memory: expected at most 1048576 TiB"},
        Break{"MoreGpusThanAnybodyHas",
              [](Json& d) {
                d["nodes"] = 1'000'000;
                d["gpus_per_node"] = 1'000'000;
                d["inter_node"] = d["intra_node"];
              },
              "c: /nodes: expected at most 1000000 GPUs on all nodes"},
        Break{"HostBothWaysOfOne",
              [](Json& d) {
                d["host_both_ways"] = {{"offload", 0.5}};
              },
              "c: /host_both_ways: key 'reload' is missing"},
        Break{"HostBothWaysAboveOne",
              [](Json& d) {
                d["host_both_ways"] = {{"offload", 0.5}, {"reload", 1.5}};
              },
              "c: /host_both_ways/reload: expected a share above 0 and up to 1"},
        Break{"CommunicatorMemoryInParts",
              [](Json& d) {
                d["communicator_memory"] = {{"first", "1 MiB"}, {"second", "1 MiB"}};
              },
              "c: /communicator_memory: key 'all_reduce' is missing"},
        Break{"UnknownHostKey", [](Json& d) { d["host"]["lunch"] = "1 us"; },
              "c: /host/lunch: unknown key 'lunch', did you mean 'launch'?"}),
    RowName());

INSTANTIATE_TEST_SUITE_P(
    Gpu,
    ClusterFaultTest,
    testing::Values(
        Break{"Format", [](Json& d) { d["gpu"]["format"] = "dc-gpu/2"; },
              "c: /gpu/format: expected \"dc-gpu/1\""},
        Break{"Path", [](Json& d) { d["gpu"] = "../gpus/h200.yaml"; },
              "c: /gpu: expected an object with keys, found \"../gpus/h200.yaml\""},
        Break{"NoMemory", [](Json& d) { d["gpu"]["memory"] = "0 B"; },
              "c: /gpu/memory: expected more than 0"},
        Break{"NoBandwidth", [](Json& d) { d["gpu"]["memory_bandwidth"] = "0 GB/s"; },
              "c: /gpu/memory_bandwidth: expected more than 0"},
        Break{"NothingIsGivenBack", [](Json& d) { d["gpu"]["give_back_rate"] = "0 GB/s"; },
              "c: /gpu/give_back_rate: expected more than 0"},
        Break{"NoMultiprocessors", [](Json& d) { d["gpu"]["multiprocessors"] = 0; },
              "c: /gpu/multiprocessors: expected a count from 1 to 1000000"},
        Break{"NoEfficiency", [](Json& d) { d["gpu"]["matmul_efficiency"] = 0; },
              "c: /gpu/matmul_efficiency: expected a share above 0 and up to 1"},
        Break{"EfficiencyAboveOne", [](Json& d) { d["gpu"]["bandwidth_efficiency"] = 1.01; },
              "c: /gpu/bandwidth_efficiency: expected a share above 0 and up to 1"},
        Break{"KernelsLackAShare",
              [](Json& d) {
                d["gpu"]["kernels"] = KernelsDocument();
                d["gpu"]["kernels"]["softmax"].erase("long_rows");
              },
              "c: /gpu/kernels/softmax: key 'long_rows' is missing"},
        Break{"KernelsOfAnotherName",
              [](Json& d) {
                d["gpu"]["kernels"] = KernelsDocument();
                d["gpu"]["kernels"]["reduction"]["waves"] = "1 us";
              },
              "c: /gpu/kernels/reduction/waves: unknown key 'waves', did you mean 'wave'?"},
        Break{"TritonLacksARate",
              [](Json& d) {
                d["gpu"]["triton"] = TritonDocument();
                d["gpu"]["triton"].erase("tiles");
              },
              "c: /gpu/triton: key 'tiles' is missing"},
        Break{"TritonAboveOne",
              [](Json& d) {
                d["gpu"]["triton"] = TritonDocument();
                d["gpu"]["triton"]["full_threads"] = 1.5;
              },
              "c: /gpu/triton/full_threads: expected a share above 0 and up to 1"},
        Break{"UnalignedFaster",
              [](Json& d) {
                d["unaligned_collectives"] = {
                    {"all_gather", 1.5}, {"reduce_scatter", 0.5}, {"all_reduce", 1}};
              },
              "c: /unaligned_collectives/reduce_scatter: expected how many times as long, 1 to 10"},
        Break{
            "ShiftedFaster",
            [](Json& d) {
              d["shifted_shard_gathers"] = {{"above", "2 MiB"}, {"start", "9 us"}, {"times", 0.9}};
            },
            "c: /shifted_shard_gathers/times: expected how many times as long, 1 to 10"},
        Break{"BesideMemoryDescends",
              [](Json& d) {
                d["gpu"]["contention"] = {
                    {"beside_memory", BesideMemoryOf({{"16 MiB", 1.2}, {"8 MiB", 0.4}})},
                    {"source", "made up"}};
              },
              "c: /gpu/contention/beside_memory/tables/0/longer/1: sizes must ascend"},
        Break{"BesideMemoryOfNothing",
              [](Json& d) {
                d["gpu"]["contention"] = {{"beside_memory", BesideMemoryOf({})},
                                          {"source", "made up"}};
              },
              "c: /gpu/contention/beside_memory/tables/0/longer: expected at least one pair"},
        Break{"BesideMemoryFaster",
              [](Json& d) {
                d["gpu"]["contention"] = {{"beside_memory", BesideMemoryOf({{"8 MiB", -0.1}})},
                                          {"source", "made up"}};
              },
              "c: /gpu/contention/beside_memory/tables/0/longer/0/1: expected times the time "
              "alone, 0 to 100"},
        Break{"GathersBesideMemoryFaster",
              [](Json& d) {
                Json memory = BesideMemoryOf({{"8 MiB", 0.1}});
                memory["copy_engine"] = -0.3;
                d["gpu"]["contention"] = {{"beside_memory", memory}, {"source", "made up"}};
              },
              "c: /gpu/contention/beside_memory/copy_engine: expected times the time alone, 0 to "
              "100"},
        Break{"NoChannels", [](Json& d) { d["collective_channels"] = 0; },
              "c: /collective_channels: expected a count from 1 to 1000000"},
        Break{"UnknownDType", [](Json& d) { d["gpu"]["matmul"]["bf16"] = "1 TFLOP/s"; },
              "c: /gpu/matmul/bf16: unknown key 'bf16'"},
        Break{"NoPeak", [](Json& d) { d["gpu"]["matmul"]["float32"] = "0 TFLOP/s"; },
              "c: /gpu/matmul/float32: expected more than 0"},
        Break{"WorkspaceNumber", [](Json& d) { d["gpu"]["workspaces"][1] = 8; },
              "c: /gpu/workspaces/1: expected bytes with a unit such as \"80 GiB\", found 8"},
        Break{"WorkspaceWithoutBytes", [](Json& d) { d["gpu"]["workspaces"][1] = "0 B"; },
              "c: /gpu/workspaces/1: expected more than 0"},
        Break{"BiasWorkspaceWithoutBytes", [](Json& d) { d["gpu"]["bias_workspace"] = "0 B"; },
              "c: /gpu/bias_workspace: expected more than 0"},
        Break{"ContentionClass",
              [](Json& d) {
                d["gpu"]["contention"] = {{"matmult", Json::object()}, {"source", ""}};
              },
              "c: /gpu/contention/matmult: unknown key 'matmult', did you mean 'matmul'?"},
        Break{"ContentionAboveOne",
              [](Json& d) {
                d["gpu"]["contention"] = {{"matmul", {{"collective", 1.1}}}, {"source", ""}};
              },
              "c: /gpu/contention/matmul/collective: expected a share of the undisturbed speed, "
              "0.01 to 1"},
        Break{"RanksApartTooFast",
              [](Json& d) {
                d["gpu"]["contention"] = {
                    {"ranks_apart", {{"idle", "1 us"}, {"rate", 1.5}, {"most", "1 us"}}},
                    {"source", ""}};
              },
              "c: /gpu/contention/ranks_apart/rate: expected a share of the time that passes, 0 to "
              "1"},
        Break{"FirstMoreOftenThanAlways",
              [](Json& d) {
                d["gpu"]["contention"] = {{"comes_first", {{"share", 1.1}, {"delay", "1 us"}}},
                                          {"source", ""}};
              },
              "c: /gpu/contention/comes_first/share: expected a share of all collectives, 0 to 1"},
        Break{"GapWithoutUnit",
              [](Json& d) {
                d["gpu"]["gaps"] = {{"kernel", 2}, {"source", ""}};
              },
              "c: /gpu/gaps/kernel: expected a time with a unit such as \"4.9 us\", found 2"}),
    RowName());

INSTANTIATE_TEST_SUITE_P(
    Tables,
    ClusterFaultTest,
    testing::Values(
        Break{"UnknownKind", [](Json& d) { d["collectives"][0]["kind"] = "allgather"; },
              "c: /collectives/0/kind: expected all_gather, reduce_scatter or all_reduce, found "
              "'allgather', did you mean 'all_gather'?"},
        Break{"NoKind", [](Json& d) { d["collectives"][0].erase("kind"); },
              "c: /collectives/0: key 'kind' is missing"},
        Break{"NoRate",
              [](Json& d) {
                d["copy_engines"] = {{"start", "3 us"}, {"copy", "2 us"}};
              },
              "c: /copy_engines: key 'rate' is missing"},
        Break{"CrowdingBelowNothing",
              [](Json& d) {
                d["copy_engines"] = {
                    {"start", "3 us"}, {"copy", "2 us"}, {"rate", "380 GB/s"}, {"crowding", -1}};
              },
              "c: /copy_engines/crowding: expected a share, 0 to 10"},
        Break{"NoRanks", [](Json& d) { d["collectives"][0]["ranks"] = 0; },
              "c: /collectives/0/ranks: expected a count from 1 to 1000000"},
        Break{"NoPoints", [](Json& d) { d["collectives"][0]["points"] = Json::array(); },
              "c: /collectives/0/points: expected at least one pair"},
        Break{"NoPair", [](Json& d) { d["collectives"][0]["points"][0].push_back("1 us"); },
              "c: /collectives/0/points/0: expected a pair such as [16 MiB, 55.3 us]"},
        Break{"SizeWithoutUnit", [](Json& d) { d["collectives"][0]["points"][0][0] = 1; },
              "c: /collectives/0/points/0/0: expected bytes with a unit such as \"80 GiB\", found "
              "1"},
        Break{"SizesDescend", [](Json& d) { d["collectives"][0]["points"][1][0] = "1 MB"; },
              "c: /collectives/0/points/1: sizes must ascend"},
        Break{"SecondTable", [](Json& d) { d["collectives"][1]["kind"] = "all_gather"; },
              "c: /collectives/1: a second table of this kind, number of ranks, nodes and calls"},
        Break{"NoCalls", [](Json& d) { d["collectives"][0]["calls"] = 0; },
              "c: /collectives/0/calls: expected a count from 1 to 1000000"}),
    RowName());

class ConfigClusterTest : public testing::TestWithParam<const char*> {};

TEST_P(ConfigClusterTest, IsRead) {
  const Cluster cluster = LoadCluster(SourceFolder() + "/configs/clusters/" + GetParam() + ".yaml");
  EXPECT_EQ(cluster.name, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Committed,
                         ConfigClusterTest,
                         testing::Values("h200-2", "h200-4", "h200-8", "h200-8-from-4"));

}  // namespace
}  // namespace dcsim
