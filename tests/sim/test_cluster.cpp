#include "tests/sim/test_cluster.h"

#include "sim/search/random.h"

namespace dcsim {

Cluster HandCluster() {
  Cluster cluster;
  cluster.name = "by-hand";
  cluster.gpus_per_node = 8;
  cluster.gpu.name = "Hand GPU";
  cluster.gpu.memory = Bytes::GiB(64);
  cluster.gpu.outside_allocator = Bytes::GiB(1);
  cluster.gpu.give_back_rate = BytesPerSecond(500'000'000'000);
  cluster.gpu.memory_bandwidth = BytesPerSecond(1'000'000'000'000);
  cluster.gpu.multiprocessors = 100;
  cluster.gpu.matmul = {{DType::kBFloat16, 100e12}, {DType::kFloat32, 100e12}};
  cluster.gpu.matmul_efficiency = 1;
  cluster.gpu.attention_efficiency = 1;
  cluster.gpu.attention_backward_efficiency = 1;
  cluster.gpu.bandwidth_efficiency = 1;
  cluster.gpu.shortest_kernel = Duration::FromUs(1);
  cluster.host.view = Duration::FromUs(1);
  cluster.host.launch = Duration::FromUs(4);
  cluster.host.collective = Duration::FromUs(8);
  cluster.host.event = Duration::FromUs(1);
  cluster.host.synchronize = Duration::FromUs(10);
  cluster.host.segment = Duration::FromUs(100);
  cluster.intra_node.bus_bandwidth = BytesPerSecond(100'000'000'000);
  cluster.intra_node.latency = Duration::FromUs(10);
  cluster.document = {{"format", "dc-cluster/1"}, {"name", cluster.name}};
  return cluster;
}

Cluster ContendedCluster(std::uint64_t seed) {
  Cluster cluster = HandCluster();
  Random random(seed);
  cluster.gpu.gaps.collective = Duration::FromNs(static_cast<std::int64_t>(random.Below(3)) * 700);
  cluster.gpu.gaps.kernel = Duration::FromNs(static_cast<std::int64_t>(random.Below(3)) * 150);
  cluster.gpu.gaps.queued = Duration::FromNs(static_cast<std::int64_t>(random.Below(3)) * 400);
  Contention& contention = cluster.gpu.contention;
  contention.measured = true;
  contention.streaming_kernel = Duration::FromNs(static_cast<std::int64_t>(random.Below(2)) * 900);
  contention.collective_start = Duration::FromNs(static_cast<std::int64_t>(random.Below(3)) * 800);
  contention.comes_first = Share::FromPermille(static_cast<int>(random.Below(3)) * 400);
  contention.first_delay = Duration::FromUs(static_cast<std::int64_t>(random.Below(3)) * 3);
  contention.most_apart = Duration::FromUs(static_cast<std::int64_t>(random.Below(3)) * 90);
  contention.drift = Share::FromPermille(static_cast<int>(random.Below(3)) * 20);
  if (random.Below(2) == 0) {
    cluster.gpu.gaps.start = Duration::FromNs(static_cast<std::int64_t>(random.Below(3)) * 300);
    contention.idle_wait = Duration::FromNs(static_cast<std::int64_t>(random.Below(3)) * 500);
  }
  for (Contention::Row& row : contention.rates) {
    for (Rate& rate : row) {
      rate = Rate::FromPermille(1000 - static_cast<std::int64_t>(random.Below(600)));
    }
  }
  contention.crowded_kernel = Duration::FromNs(static_cast<std::int64_t>(random.Below(2)) * 1'100);
  if (random.Below(2) == 0) {
    const auto some = [&random] {
      return Duration::FromNs(static_cast<std::int64_t>(random.Below(3)) * 1'300);
    };
    cluster.copy_engines = CopyEngines{some(), some(), BytesPerSecond(90'000'000'000), 0.5};
  }
  if (random.Below(2) == 0) {
    contention.beside_memory =
        BesideMemory{Bytes::MiB(1),
                     {{2,
                       Duration::FromNs(900),
                       {{Bytes::MiB(1), Longer::FromPermille(1500)},
                        {Bytes::MiB(64), Longer::FromPermille(300)}}}},
                     Longer::FromPermille(static_cast<std::int64_t>(random.Below(2)) * 400)};
    cluster.shifted_shard_gathers = ShiftedShardGathers{Bytes::KiB(16), Duration::FromUs(2), 1.3};
  }
  return cluster;
}

Cluster CrowdedCluster(std::uint64_t seed) {
  Cluster cluster = ContendedCluster(seed);
  Random random(seed);
  const auto some = [&random](int most) {
    return static_cast<std::int64_t>(random.Below(3)) * most;
  };
  Contention& contention = cluster.gpu.contention;
  contention.collective_multiprocessors = static_cast<int>(some(20));
  contention.copy_multiprocessors = static_cast<int>(some(30));
  contention.to_host = Rate::FromPermille(some(500));
  if (random.Below(2) == 0) {
    contention.side_kernels =
        SideKernels{Duration::FromNs(some(2'000)), Duration::FromNs(some(9'000))};
  }
  return cluster;
}

}  // namespace dcsim
