#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "model/cost/estimate.h"
#include "model/cost/kernel_traits.h"
#include "model/ir/graph.h"
#include "model/ir/profile.h"
#include "model/ir/schedule.h"
#include "model/machine/cluster.h"

namespace dcsim {

/// What one Work costs: time on its stream, time of the host thread to issue it.
struct WorkCost {
  Duration device{};
  Duration host{};
  Duration further{};  // of host: for launches behind the first, with which the task may start
  Source source = Source::kEstimated;  // of the device time
  DeviceUse use = DeviceUse::kStreaming;
  std::optional<Rate> beside_collective{};  // speed beside a collective; none: the class's
  std::optional<Rate> beside_host_copy{};   // of a copy from or to the host: speed beside one on
                                            // another stream; none: no such copy
  bool to_host = false;                     // such a copy to the host
  bool guessed = false;  // estimated, of kernels that no profile has shown (KernelTraits::shown)
  bool of_link = false;  // of a collective: as in Estimate
  MeasuredDistance distance{};  // the same
  Share demand = Share::All();  // of what it may take from others: of the memory bandwidth as
                                // side_streaming, of its thread blocks as collective
  Share memory_load{};          // of compute's streaming kernels: MemoryLoad
  Longer beside_memory{};       // of a collective or a gather by copy engines: beside full memory
                                // traffic
  std::int32_t launches = 0;    // kernels and copies that it puts on its stream
  Duration own_shard{};  // of the device time: the end of a gather by copy engines, in which the
                         // rank's own shard is copied, by multiprocessors
  Duration start{};  // before the device time, where no task of its stream runs up to it: from the
                     // event that lets it start to its kernel, on side streams; NCCL's have gaps of
                     // the cluster
  Duration gaps{};   // of the device time: before and between its kernels, when none runs
  Duration
      room{};  // longest time that a kernel of another stream waits beside it for multiprocessors
  Duration own_tiles{};        // of MultiprocessorShare
  Duration own_latest{};       // the same
  Duration last_wave{};        // of the device time: its end, in which it leaves some of them
  std::int32_t last_free = 0;  // so many
};

/// Costs of all works of a schedule, by WorkId.
///
///   profile   measured op times, or null; ops it lacks fall back to the roofline
///
/// Op: the profile's median and a gap a kernel (the cluster's, else the profile's), else
///   KernelTime and the cluster's gap for as many kernels as ops of its kind launch (OpLaunches).
/// Collective: GroupTime of its calls. One rank's is a copy, which starts as late as others.
/// Memory: max(moved / rate, launches * shortest kernel), with the cluster's rate of the pattern,
/// else bandwidth * efficiency; copies from and to the host: moved / rate. Host: a profiled op what
/// it took there at the cluster's pace (HostCosts::launch over ProfiledLaunch), another op, copy or
/// NCCL call each at its own cost, one event cost an event. Throws Error for a product in
/// a dtype that the GPU table lacks, for a host copy without any rate, and for a step of more than
/// a day.
///
///   clock_mhz   SM clock at which kernels run; 0: at which they were profiled (ProfiledClock).
///               Without GpuSpec::power it changes nothing
///
/// With a straggler all costs are that rank's: its ops and memory work take Cluster::straggler
/// times as long; collectives, which wait for it, as long as ever. What the host does takes
/// Cluster::host_slowdown times as long.
std::vector<WorkCost> EstimateWorks(const Schedule& schedule,
                                    const Graph& graph,
                                    const Profile* profile,
                                    const Cluster& cluster,
                                    double clock_mhz = 0);

/// What an op's kernels occupy of the GPU.
DeviceUse UseOf(const KernelTraits& of);

/// Rate of copies between a GPU and pinned host memory (kOffload, kReload, kInputs, which go as
/// kReload does unless they have a rate of their own): measured, or the GPU file's figure, which
/// may be missing (0).
std::pair<BytesPerSecond, Source> HostRateOf(const Cluster& cluster, MemoryPattern pattern);

}  // namespace dcsim
