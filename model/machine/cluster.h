#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "model/base/units.h"
#include "model/ir/document.h"
#include "model/ir/schedule.h"
#include "model/machine/gpu.h"
#include "model/machine/host.h"

namespace dcsim {

/// What NCCL takes of each GPU's memory.
struct CommunicatorMemory {
  Bytes first;       // gathers and reduce-scatters on one communicator
  Bytes all_reduce;  // once there are all-reduces, too
  Bytes second;      // a second communicator, used at the same time
};

/// Measured rate of one kind of memory work, bytes read plus bytes written; of copies from and to
/// the host, bytes copied.
struct PatternRate {
  MemoryPattern pattern = MemoryPattern::kCopy;
  BytesPerSecond rate;
};

/// What is left of the rate of copies from and to the host while others go the other way.
struct HostBothWays {
  double offload = 1;
  double reload = 1;
};

/// A measured size and time. Sizes of all three kinds are full tensors, as in nccl-tests.
struct CollectivePoint {
  Bytes payload;
  Duration time;
};

/// Measured times of one collective, or a group of them, over one number of ranks, by ascending
/// payload. It prices groups of as many ranks that lie on as many nodes.
struct CollectiveTable {
  CollectiveKind kind = CollectiveKind::kAllGather;
  int ranks = 0;
  int calls = 1;  // of one size, in one group; a point's payload is that of all
  std::vector<CollectivePoint> points;
  int nodes = 1;  // that the ranks lay on
};

/// What gathers by copy engines take, by which a GPU reads its peers' memory.
struct CopyEngines {
  Duration start;       // of a gather, besides its copies
  Duration copy;        // of each copy, besides its bytes
  BytesPerSecond rate;  // from a peer that nobody else reads from
  double crowding = 0;  // share by which a copy takes longer for each other GPU that might read
                        // from the same one (copy_gather_time.h)
};

/// What gathers take longer whose ranks read their shards from no multiple of 16 bytes.
struct ShiftedShardGathers {
  Bytes above;       // smaller payloads take as long as ever
  Duration start;    // longer, whatever the payload
  double times = 1;  // as long, beyond a small one's time
};

/// A link class for collectives that no table covers.
struct Link {
  BytesPerSecond bus_bandwidth;  // of the whole job, as nccl-tests reports it for large messages
  Duration latency;              // of a launch
  Duration hop_latency;          // of each ring step
};

/// The machines of a job: GPUs, links, measured tables. File form: dc-cluster/1
/// (docs/reference/clusters.md).
struct Cluster {
  std::string name;
  int nodes = 1;
  int gpus_per_node = 1;
  GpuSpec gpu;
  HostCosts host;
  CommunicatorMemory communicator_memory;
  std::optional<Bytes> pinned_memory;        // that one machine's processes may pin together
  std::vector<PatternRate> memory_patterns;  // those that were measured
  HostBothWays host_both_ways;
  std::vector<CollectiveTable> collectives;  // of NCCL
  std::optional<CopyEngines> copy_engines;   // none: not measured
  int collective_channels = 0;  // thread blocks of NCCL's large collectives; 0 where not known
  /// By CollectiveKind: how many times as long NCCL's take, beyond a small one's time, whose
  /// tensors or ranks' parts begin at no multiple of 16 bytes.
  std::array<double, 3> unaligned_collectives{1, 1, 1};
  std::optional<ShiftedShardGathers> shifted_shard_gathers;  // none: they take as long as others
  Link intra_node;
  std::optional<Link> inter_node;  // needed for more than one node
  /// How many times as long kernels take on the slowest GPU of the job as on the one that was
  /// profiled; all others wait for it.
  double straggler = 1;
  /// How many times the profiled GPU's energy the hungriest GPU of the job needs for the same work:
  /// at the power limit it has the lowest clock, and all others wait for it.
  double straggler_power = 1;
  /// How many times as long the host's calls take as they were measured, on the slowest rank.
  double host_slowdown = 1;
  /// W that operators let each GPU take. None: what the GPU's power model says, at which profiles
  /// were taken.
  std::optional<double> power_limit_watts;
  std::string measured;  // versions, machine, date and command of the tables; may be empty
  Json document;         // the whole file, for results

  int gpus() const { return nodes * gpus_per_node; }
  /// Nodes that this many ranks lie on, each filled before the next.
  int NodesOf(int ranks) const { return (ranks + gpus_per_node - 1) / gpus_per_node; }
};

/// Reads a dc-cluster/1 document, whose "gpu" is a dc-gpu/1 object; `read_gpu` reads what of it is
/// for models of kernels. Throws Error with every fault.
Cluster ReadCluster(const Json& document, const Locator& locate, const KernelRatesReader& read_gpu);

}  // namespace dcsim
