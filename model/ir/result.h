#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/units.h"
#include "model/ir/document.h"
#include "model/ir/schedule.h"
#include "model/ir/timeline.h"
#include "model/ir/waiting_delays.h"

namespace dcsim {

/// All collectives of one kind in one step.
struct CollectiveTotals {
  CollectiveKind kind = CollectiveKind::kAllGather;
  std::int64_t calls = 0;     // NCCL calls, each of one tensor
  std::int64_t launches = 0;  // kernels: a group of calls is one
  Bytes payload;              // full tensors, padding for equal shards included
  Bytes wire;                 // sent by each rank
  Duration busy;
};

/// Share of the device time whose cost was measured, interpolated or estimated; they add up to 1.
struct SourceShares {
  double measured = 0;
  double interpolated = 0;
  double estimated = 0;
};

/// Bytes alive at the peak of live bytes, by class.
struct ClassBytes {
  BufferClass buffer_class = BufferClass::kActivation;
  Bytes bytes;
};

/// Where a step that did not complete stopped.
struct StopReport {
  std::string task;  // what it was doing, for people
  Bytes requested;   // of a failed allocation
  std::uint32_t step = 0;
  std::string op = {};                  // the recorded op that it did, "aten::mm"; or empty
  std::string requested_class = {};     // what the allocation was for; or empty
  std::vector<ClassBytes> needed = {};  // all that is there before the first step, where that alone
                                        // does not fit; or empty
};

/// The sum over all classes.
Bytes SumOf(const std::vector<ClassBytes>& classes);

/// What the host took for a measured step, by stretches: each begins with the next `ops` computing
/// tasks in the schedule's order and ends where the following one begins. A stretch in which the
/// host may have waited for the GPU has no time. No ops where nothing was read.
struct HostReading {
  std::int64_t ops = 0;
  std::vector<std::optional<Duration>> times;    // of the stretches' computing tasks
  std::vector<std::optional<Duration>> between;  // of their other tasks; results before
                                                 // 2026-11-25 have none
  std::optional<std::int64_t> step;              // which of the measured ones, from 0; the same
  std::optional<double> stolen;  // share of the CPUs' busy time that other machines took (steal)
};

/// A segment that PyTorch's allocator has of the driver (cudaMalloc).
struct MeasuredSegment {
  Bytes address;  // above the lowest segment of the process; whole MiB, as are the bytes
  Bytes bytes;

  bool operator==(const MeasuredSegment&) const = default;
};

/// What one rank of a measured step saw of its GPU and host: time, memory, clock and power.
struct RankReadings {
  Duration compute;  // of the traced steps, mean
  Duration exposed_communication;
  Duration traced_step;
  Bytes peak_allocated;
  Bytes least_peak_allocated;  // of the step with the smallest peak
  Bytes peak_reserved;
  Bytes outside_allocator;
  double sm_clock_mhz = 0;  // mean over the steps; 0 where it was not read
  double watts = 0;         // the same
  HostReading host;
  HostReading first_host;  // in the first step of all, in which modules load; until 2026-11-27: not
                           // read
  std::vector<Bytes> reserved_after;            // each step, those to warm up included; the same
  std::optional<WaitingDelays> waiting_delays;  // until 2026-11-25: not read
  std::vector<MeasuredSegment> segments;  // in the order in which they were made, where recorded
};

/// How a measured result came about.
struct MeasurementNotes {
  std::vector<Duration> step_times;  // each the maximum over ranks
  std::vector<double> losses;        // of the first steps, mean over ranks and micro-steps
  std::vector<RankReadings> ranks;
  Json versions;
  Json machine;
  std::string date;
  std::string command;
};

/// The answer about one schedule, predicted or measured. File form: dc-result/1
/// (docs/reference/formats.md).
struct Result {
  Origin origin = Origin::kPredicted;
  std::string outcome = "completed";  // or out_of_memory, deadlock, out_of_pinned_memory
  std::optional<StopReport> stop;
  std::string verdict;  // of a prediction: fits, may_run_out_of_memory, does_not_fit or deadlock
  Duration step_time;
  Duration forward;    // of a prediction: the parts of the step time, of all micro-steps
  Duration backward;   // together; what the compute stream waits for counts to the part before
  Duration optimizer;  // the wait (StepPhases)
  Duration compute;
  Duration exposed_communication;
  Duration compute_gaps;    // of a prediction's compute: between kernels of a task, nothing runs
  Duration exposed_gaps;    // … and a collective does
  Duration exposed_starts;  // of its exposed communication: until the kernel of a collective starts
  // Memory of a prediction that stopped is that at the stop, not at its peak.
  Bytes peak_live;
  Bytes peak_allocated;
  Bytes peak_active;
  Bytes peak_reserved;
  Bytes peak_reserved_most;  // of a prediction: MostReserved
  Bytes capacity;            // of a prediction: what the GPU leaves to the allocator
  Bytes outside_allocator;   // of the process on its GPU: context, modules, NCCL buffers
  Bytes allocated_after_step;
  std::int64_t allocator_retries = 0;
  Bytes host_pinned;                          // of each rank (Schedule::host_pinned)
  std::vector<CollectiveTotals> collectives;  // kinds in use, in enumerator order
  std::vector<ClassBytes> peak_classes;       // in use, in enumerator order
  std::string workload;
  std::uint64_t graph_hash = 0;
  Json cluster;
  Json plan;
  int gpus = 1;
  SourceShares sources;
  double sm_clock_mhz = 0;        // of a prediction: that of the slowest GPU; 0: as profiled
  std::optional<Duration> bound;  // half-width of the prediction's interval
  std::string no_bound;           // of a prediction that has none: why, for people
  std::optional<MeasurementNotes> measurement;  // of measured results
  double tokens_per_second = 0;                 // over all ranks
  double model_flops_utilisation = 0;           // of the dense peaks of the products' dtypes
};

/// The canonical JSON of a result, integers in ns and bytes.
Json PrintResult(const Result& result);

/// The `host` or `first_host`, the `waiting_ns`, the `segments_mib` and the `reserved_after_bytes`
/// of a rank in it.
Json PrintHostReading(const HostReading& reading);
Json PrintWaitingDelays(const WaitingDelays& delays);
Json PrintSegments(const std::vector<MeasuredSegment>& segments);
Json PrintByteCounts(const std::vector<Bytes>& counts);

}  // namespace dcsim
