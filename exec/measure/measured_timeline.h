#pragma once

#include <array>
#include <vector>

#include "exec/profiler/intervals.h"
#include "exec/profiler/kernel_records.h"
#include "model/ir/schedule.h"
#include "model/ir/timeline.h"

namespace dcsim::exec {

/// A traced step: kernels labelled by their TaskId, as one span a task (first start to last end).
///
///   step_start_ns   CUPTI time at which the step before ended; it becomes time 0
Timeline TimelineOf(const std::vector<KernelRecord>& records,
                    const Schedule& schedule,
                    std::uint64_t step_start_ns,
                    int rank);

/// Union of the kernels of compute-stream tasks that are no collectives, and of all collectives.
Intervals ComputeIntervals(const std::vector<KernelRecord>& records, const Schedule& schedule);
Intervals CollectiveIntervals(const std::vector<KernelRecord>& records, const Schedule& schedule);

/// What traced steps are like, means over them.
struct StepTraces {
  Duration step_time;  // between the ends of steps on the compute stream
  Duration compute;
  Duration exposed_communication;
  std::array<Duration, 3> busy;     // of collectives, by CollectiveKind; waiting for other ranks
                                    // included
  std::uint64_t last_start_ns = 0;  // CUPTI time at which the last step began
};

/// Reads steps that followed each other, labelled.
///
///   steps   records of each, at least one
///   before  how many of them only come before those that count; less than there are. Where it is 0
///           the first step begins with its first record
StepTraces MeanTraces(const std::vector<std::vector<KernelRecord>>& steps,
                      std::size_t before,
                      const Schedule& schedule);

}  // namespace dcsim::exec
