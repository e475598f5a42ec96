#pragma once

#include "model/machine/cluster.h"

namespace dcsim {

/// A dc-cluster/1 document of two nodes with round numbers:
///
///   GPU         memory bandwidth 2 TB/s at efficiency 0.5 (1 B/ps); bfloat16 products 1000 TFLOP/s
///               at 0.5, fused attention at 0.25, its backward at 0.125; no kernel below 2 us
///   host        view 1 us, launch 5 us, collective 8 us, event 0.5 us
///   links       intra-node 400 GB/s, 6 us + 1 us a hop; inter-node 50 GB/s, 10 us + 2 us a hop
///   tables      all-gather over 4 ranks: 1 MB 20 us, 3 MB 40 us, 7 MB 60 us
///               reduce-scatter over 4 ranks: 2 MB 30 us
Json ClusterDocument();

/// The cluster that it describes.
Cluster TestCluster();

}  // namespace dcsim
