#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/executor/step_executor.h"
#include "model/ir/document.h"
#include "model/ir/result.h"
#include "model/ir/timeline.h"

namespace dcsim::exec {

/// How steps are measured.
struct MeasureSettings {
  int warmup_steps = 5;
  int steps = 20;
  bool trace = true;  // more steps: one with the host's times, then some with kernel records, for
                      // timeline, compute and exposed time
  bool segments = false;  // record where the driver puts the allocator's segments (RecordSegments)
  std::function<void(const std::string&)> report = [](const std::string&) {};
  std::function<bool(bool)> on_any_rank = [](bool own) { return own; };  // whether it holds on one;
                                                                         // all ranks ask at once
};

/// Time of one kind of collective in a traced step, waiting for other ranks included.
struct CollectiveBusy {
  CollectiveKind kind = CollectiveKind::kAllGather;
  Duration busy;
};

/// What one rank measured.
struct RankMeasurement {
  std::vector<Duration> step_times;  // between the ends of neighbouring steps on the compute stream
  std::vector<double> losses;        // mean over micro-steps, of every step, warm-up included
  Bytes peak_allocated;              // after warm-up
  Bytes least_peak_allocated;        // of the measured step with the smallest peak
  Bytes peak_active;
  Bytes peak_reserved;
  Bytes
      outside_allocator;  // of the GPU's memory, behind the measured steps: context, modules, NCCL
  Bytes allocated_after_step;
  std::int64_t retries = 0;        // in the measured steps
  double sm_clock_mhz = 0;         // mean over the measured steps; 0 where the driver does not say
  double watts = 0;                // the same
  Duration compute;                // of the traced steps, mean
  Duration exposed_communication;  // the same
  Duration traced_step;            // between ends on the compute stream, mean
  std::vector<HostReading> hosts;  // of the measured steps, in order
  HostReading first_host;          // of the first step to warm up, on a GPU, one stretch
  std::vector<Bytes> reserved_after;            // each step up to the last measured one, on a GPU
  std::optional<double> stolen;                 // HostReading's, over the measured steps
  std::optional<WaitingDelays> waiting_delays;  // behind the measured steps, on a GPU
  std::vector<MeasuredSegment> segments;        // behind the measured steps, where recorded
  std::vector<CollectiveBusy> busy;             // mean over the traced steps
  std::optional<Timeline> timeline;             // of the last of them
  std::uint64_t timeline_start_ns = 0;          // its time 0, on the clock of CUPTI, one a machine
};

/// Runs warm-up steps, measured steps, and traced ones. On the CPU times are the host's, memory is
/// 0 and nothing is traced.
///
///   require_quiet   nothing is returned where, behind the first step, a stream of any rank delays
///                   kernels while it waits: which ones do may change when all that a step uses is
///                   in use, so streams that are chosen once more are quiet
std::optional<RankMeasurement> MeasureSteps(StepExecutor& executor,
                                            const Schedule& schedule,
                                            c10::Device device,
                                            const MeasureSettings& settings,
                                            bool require_quiet);

}  // namespace dcsim::exec
