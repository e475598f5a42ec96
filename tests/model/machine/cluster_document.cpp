#include "tests/model/machine/cluster_document.h"

#include "model/cost/kernel_models.h"

namespace dcsim {

Json ClusterDocument() {
  return Json::parse(R"({
 "format": "dc-cluster/1",
 "name": "test",
 "nodes": 2,
 "gpus_per_node": 4,
 "gpu": {"format": "dc-gpu/1", "name": "GPU", "memory": "80 GiB", "outside_allocator": "1 GiB",
         "memory_bandwidth": "2 TB/s", "multiprocessors": 100,
         "matmul": {"bfloat16": "1000 TFLOP/s", "float32": "100 TFLOP/s"},
         "matmul_efficiency": 0.5, "attention_efficiency": 0.25,
         "attention_backward_efficiency": 0.125, "bandwidth_efficiency": 0.5,
         "shortest_kernel": "2 us", "workspaces": ["32 MiB", "8 MiB"], "source": "made up"},
 "host": {"view": "1 us", "launch": "5 us", "collective": "8 us", "event": "0.5 us",
          "synchronize": "10 us", "segment": "200 us", "source": "made up"},
 "intra_node": {"bus_bandwidth": "400 GB/s", "latency": "6 us", "hop_latency": "1 us"},
 "inter_node": {"bus_bandwidth": "50 GB/s", "latency": "10 us", "hop_latency": "2 us"},
 "measured": "never",
 "collectives": [
  {"kind": "all_gather", "ranks": 4,
   "points": [["1 MB", "20 us"], ["3 MB", "40 us"], ["7 MB", "60 us"]]},
  {"kind": "reduce_scatter", "ranks": 4, "points": [["2 MB", "30 us"]]}]
})");
}

Cluster TestCluster() {
  return ReadCluster(ClusterDocument(), PointerLocator("cluster"), kKernelRatesReader);
}

}  // namespace dcsim
