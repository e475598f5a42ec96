#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.h"
#include "model/cost/contention.h"
#include "model/cost/kernel_models.h"
#include "model/ir/document.h"
#include "model/ir/dtype.h"
#include "model/ir/schedule.h"
#include "model/ir/waiting_delays.h"

namespace dcsim {

/// Peak rate of dense matrix products in one element type.
struct MatmulPeak {
  DType dtype = DType::kBFloat16;
  double flops_per_second = 0;
};

/// Time that the GPU spends between tasks.
struct DeviceGaps {
  std::optional<Duration> kernel;  // between neighbouring kernels of a stream
  std::optional<Duration> step;  // between kernels of a step whose ops were profiled; else `kernel`
  Duration collective;           // from the end of what a collective waits for until it has
                                 // started on the last rank, skew between ranks included
  std::optional<Duration> start;   // of `collective` and `queued`, until the kernel starts on its
                                   // own rank; else 0
  std::optional<Duration> memory;  // start to start, of kernels of memory work, beyond their bytes;
                                   // else `kernel` and the shortest kernel
  std::optional<Duration> queued;  // before a collective that follows a task of its stream at
                                   // once; else `kernel`
  WaitingDelays waiting{};         // of ops' kernels, expected where nobody measured any
  bool waiting_measured = false;   // `waiting` is of the very streams that a step runs on
  double waiting_of_ops = 1;       // how many times as long as dc-run's shortest kernels they wait
};

/// What a power limit does to a GPU's clock and its kernels. Energies of kernels go with
/// (clock / highest_mhz)^exponent, so a step that needs too many watts runs at a lower clock.
struct PowerModel {
  double limit_watts = 0;   // of the GPU, and of those that were profiled
  double idle_watts = 0;    // whatever the GPU does
  double highest_mhz = 0;   // SM clock without need to save power
  double profiled_mhz = 0;  // at which op times were measured that do not say their own
  double exponent = 0;
  std::array<double, kDeviceUses> watts{};  // of a work beyond idle, at the highest clock
  std::array<double, kDeviceUses> slows{};  // times go with (profiled clock / clock)^slows
};

/// How wrong the parts of a prediction are: standard deviations, as shares of the part's times.
struct PartErrors {
  double ops = 0;                 // profiled ones
  double roofline = 0;            // of ops that no profile covers
  std::optional<double> guessed;  // … and whose kernels no profile has shown; none: the roofline's
  double collectives = 0;         // at a measured size and number of ranks
  double sizes = 0;               // … for each power of two to the nearest measured size
  double ranks = 0;               // … to the nearest measured number of ranks
  double contention = 0;          // of what tasks lose beside others
  double host = 0;
  double host_copies = 0;
  Duration step;  // of a whole step, whatever it does
};

/// One kind of GPU: data-sheet figures, and how much of them kernels reach. The roofline of ops
/// that no profile covers. File form: dc-gpu/1 (configs/gpus).
struct GpuSpec {
  std::string name;
  Bytes memory;                     // that CUDA reports in total
  Bytes outside_allocator;          // context and modules of one process, without NCCL
  BytesPerSecond memory_bandwidth;  // data sheet
  BytesPerSecond host_bandwidth;    // of copies from and to pinned host memory, each way alone; 0:
                                    // not said
  BytesPerSecond give_back_rate;    // of segments to the driver (cudaFree), besides
                                    // HostCosts::segment; 0: not said
  int multiprocessors = 0;
  std::vector<MatmulPeak> matmul;   // data sheet, dense
  double matmul_efficiency = 0;     // share of the peak that large products reach
  double attention_efficiency = 0;  // same, fused attention forward
  double attention_backward_efficiency = 0;
  double bandwidth_efficiency = 0;     // share of the bandwidth that streaming kernels reach
  Duration shortest_kernel;            // no kernel takes less
  std::vector<Bytes> workspaces;       // that libraries allocate once (cuBLAS)
  std::vector<Bytes> bias_workspaces;  // … with the first product that adds a bias (cuBLASLt)
  std::optional<KernelRates> kernels;
  DeviceGaps gaps;
  Contention contention;
  std::optional<PowerModel> power;  // none: clocks do not change
  std::optional<PartErrors> errors;
  std::string source;  // of these figures, for people

  double MatmulFlops(DType dtype) const;  // peak, 0 when the GPU has no such products

  /// Start to start, of kernels of memory work, beyond their bytes.
  Duration memory_pace() const {
    return gaps.memory.value_or(shortest_kernel + gaps.kernel.value_or(Duration()));
  }
  /// From the event that lets a kernel of another stream start to the kernel.
  Duration kernel_start() const { return gaps.start.value_or(Duration()); }
};

/// What the host thread spends on each kind of call.
struct HostCosts {
  Duration view;              // an op without a kernel: dispatch alone
  Duration launch;            // an op or copy with a kernel: dispatch, allocation, launch
  Duration collective;        // one NCCL call
  Duration grouped;           // each further one of a group
  Duration copy;              // one asynchronous copy between GPUs
  Duration event;             // record an event, or make a stream wait for one
  Duration synchronize;       // from the end of what the host waits for to its next call
  Duration segment;           // one cudaMalloc or cudaFree
  Duration first_call;        // what the first call of an operator takes longer in a process
  Duration first_collective;  // the same of its first collective, for each rank
  Duration record;     // an event behind a freed tensor that another stream used (record_stream)
  Duration take_back;  // of such memory, at an allocation behind its event
  Duration python_operator;  // a call of an operator from Python, besides its launches
  Duration autograd_node;    // a parameter's gradient handed to it
  Duration compiled_graph;   // a compiled graph, from its call to its first launch
  Duration module_hooks;     // eager ZeRO-3's of a module, in one direction
  int launch_queue = 0;  // kernels of a stream that have not ended, beyond which a launch waits;
                         // 0: no limit
  std::string source;
};

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

/// Reads a dc-cluster/1 document, whose "gpu" is a dc-gpu/1 object. Throws Error with every fault.
Cluster ReadCluster(const Json& document, const Locator& locate);

}  // namespace dcsim
