#include "tests/sim/test_cluster.h"

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

}  // namespace dcsim
