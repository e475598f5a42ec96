#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/base/units.h"
#include "model/cost/work_cost.h"
#include "model/ir/schedule.h"
#include "model/ir/waiting_delays.h"
#include "model/machine/contention.h"
#include "sim/engine/observer.h"
#include "sim/memory/allocator_config.h"
#include "sim/memory/allocator_stats.h"

namespace dcsim {

/// A task's host calls beside what they are priced at.
struct TaskPace {
  double slowdown = 1;  // how many times as long they take
  bool read = false;    // from a reading of the task, in which what the allocator does is included

  bool operator==(const TaskPace&) const = default;
};

/// How a simulation runs, apart from schedule and costs.
struct SimulationOptions {
  std::uint32_t warmup_steps = 2;    // before peaks are reset; the allocator's cache settles
  std::uint32_t measured_steps = 1;  // after them
  AllocatorConfig allocator;
  Duration synchronize;           // host time to return from waiting for a stream
  Duration segment;               // host time of one cudaMalloc or cudaFree
  Duration record;                // … of an event behind a freed buffer that another stream used
  Duration take_back;             // … of such an event that has passed, at the next allocation
  BytesPerSecond give_back_rate;  // of what is given back to the driver, besides; 0: takes no time
  int launch_queue = 0;     // kernels of the compute stream that have not ended, beyond which the
                            // host waits; 0: no limit. The other streams never hold as many: their
                            // tasks wait for compute, or compute for them
  Duration collective_gap;  // from what a collective waited for to its start on the last rank
  Duration start_gap;       // of both, until the collective's kernel runs on its own rank
  Duration queued_gap;      // before a collective that follows another one on its stream
  WaitingDelays waiting_delays{};
  Contention contention;
  std::optional<Bytes> pinned_memory;  // of the host that one rank may take; nothing: no limit
  std::vector<TaskPace> host_pace;     // by task; empty: as priced
  std::vector<Duration> first_calls;   // by task: what its host call takes longer in the first step
                                       // of all, in which modules load; empty: nothing
  std::uint32_t awaited_steps = 0;     // the first ones, at whose end the host waits for the GPU
};

enum class Outcome : std::uint8_t { kCompleted, kOutOfMemory, kDeadlock, kOutOfPinnedMemory };
std::string_view OutcomeName(Outcome outcome);

/// Where a run that did not complete stopped.
struct Stop {
  TaskId task;  // that could not allocate, or the first that can never start; None()
                // while the residents were allocated
  std::uint32_t step = 0;
  Bytes requested;       // of an allocation that failed; of all pinned memory, if that is too much
  BufferId buffer = {};  // that could not be allocated
  SimTime began = {};    // when the host began its last task
  SimTime time = {};     // of the stop
  std::vector<BufferId> alive = {};  // then, ascending; one of each of two steps: twice
};

/// Totals of a simulation; everything in more detail comes through observers.
struct Simulation {
  Outcome outcome = Outcome::kCompleted;
  std::optional<Stop> stop;
  std::vector<SimTime> step_ends;    // all tasks done, on the host too; warm-up included
  SimTime warmup_end;                // end of the last warm-up step, 0 without one
  AllocatorStats memory;             // peaks and retries over the measured steps
  Bytes peak_live;                   // over the measured steps
  Bytes live_after_step;             // buffers alive when the host has issued the last step, or at
                                     // the stop
  Bytes allocated_after_step;        // the allocator's view of the same
  std::uint64_t tasks_executed = 0;  // by all ranks that were simulated

  /// Per step, the time between its end and that of the step before; of the measured steps.
  std::vector<Duration> measured_step_times(std::uint32_t warmup_steps) const;
};

/// Runs the schedule again and again: warm-up, then measured steps, as one rank sees it, with every
/// other rank doing the same. Where ranks may come apart (Contention::first_permille) a second one
/// is simulated, whatever their number, and collectives wait for both; observers see the first.
///
/// Discrete events over the host thread and one queue a stream. The host issues tasks in order,
/// each for the host time of its work; a stream runs its tasks one after the other; a task starts
/// when its stream is free, the tasks it waits for have ended and, for a collective, all earlier
/// ones of its communicator have ended (NCCL runs those in issue order). Tasks that run at the same
/// time slow each other as `contention` says; a collective waits for multiprocessors, and for the
/// other rank to have found some (docs/design/costs/contention.md). Allocator calls happen in host
/// order. Running out of memory and deadlock are outcomes; pinned host memory is taken before the
/// first step. Throws Error where all steps would take more than 70 years.
///
/// Of micro-steps that the schedule leaves out (Schedule::repetition) the result is the same as if
/// they were simulated: two others of the step begin in the same state, so what lies between them
/// repeats. Throws DoesNotRepeat where no two do.
///
///   costs   by WorkId of the schedule
Simulation Simulate(const Schedule& schedule,
                    std::span<const WorkCost> costs,
                    const SimulationOptions& options,
                    std::span<Observer* const> observers);

}  // namespace dcsim
