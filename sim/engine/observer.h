#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/base/ids.h"
#include "model/base/units.h"
#include "model/ir/schedule.h"
#include "model/ir/timeline.h"
#include "sim/memory/allocator_call.h"
#include "sim/memory/allocator_stats.h"

namespace dcsim {

/// A task on a stream has begun or ended.
struct TaskEvent {
  TaskId task;
  std::uint32_t step = 0;  // counted from 0, warm-up included
  std::uint8_t stream = 0;
  SimTime time;
  Duration delays;  // by which its kernels start later because other streams wait
};

/// Which running tasks have no kernel on the GPU yet has changed.
struct KernelEvent {
  SimTime time;
  std::uint32_t without = 0;  // a bit for each stream whose task waits for multiprocessors, or, on
                              // the compute stream, has not arrived
};

/// A task has ended; the whole of its span.
struct TaskSpan {
  TaskId task;
  std::uint32_t step = 0;
  std::uint8_t stream = 0;
  StallReason stall = StallReason::kNone;
  TaskId blocker;  // whose end let it start, on any stream; None() when the host did
  SimTime start;
  SimTime end;
};

/// The host has worked on a task: from `start` to `end`, waiting included.
struct HostSpan {
  TaskId task;
  std::uint32_t step = 0;
  SimTime start;
  SimTime end;
  bool waited = false;  // for the GPU
};

/// State of memory after a task's allocator calls, in host order.
struct MemoryEvent {
  TaskId task;  // None() before the first step
  std::uint32_t step = 0;
  SimTime time;
  Bytes live;  // as requested, of the buffers alive: no allocator could do with less
  const AllocatorStats* stats = nullptr;
};

/// The allocator has done something for a task.
struct AllocatorEvent {
  TaskId task;  // None() before the first step
  std::uint32_t step = 0;
  SimTime time;
  AllocatorCall call;
  BufferId buffer;  // of kAlloc; else None()
};

/// The host begins to issue a step (`first_task` not yet issued), or all tasks of one have ended.
struct StepEvent {
  std::uint32_t step = 0;
  SimTime time;
};

/// The host begins to issue a micro-step behind the first, in a step that leaves some out.
struct MicroStepEvent {
  std::uint32_t step = 0;
  std::size_t micro_step = 0;
  SimTime time;
};

/// What was told since the micro-step `from` of the step began happens `times` more often; nothing
/// of it is told. The time of later events goes on without it, and their tasks behind those left
/// out.
struct RepeatEvent {
  std::uint32_t step = 0;
  std::size_t from = 0;
  std::int64_t times = 0;
};

/// Listens to a simulation. The engine prints nothing and keeps no history; whoever wants either
/// attaches one of these. Calls come in order of time; at one time, in the order of cause and
/// effect.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  virtual void OnStepIssued(const StepEvent&) {}
  virtual void OnStepEnded(const StepEvent&) {}
  virtual void OnTaskStarted(const TaskEvent&) {}
  virtual void OnKernels(const KernelEvent&) {}
  virtual void OnTaskEnded(const TaskSpan&) {}
  virtual void OnHost(const HostSpan&) {}
  virtual void OnMemory(const MemoryEvent&) {}
  /// Whether OnAllocator is wanted, which costs time.
  virtual bool HearsAllocator() const { return false; }
  /// Those of a task come together, once the task has the memory or is refused it.
  virtual void OnAllocator(const AllocatorEvent&) {}
  /// `state`: takes what decides, besides later events, how the observer goes on; times are those
  /// since the event. Micro-steps that begin in equal states repeat.
  virtual void OnMicroStep(const MicroStepEvent&, std::vector<std::int64_t>& /*state*/) {}
  virtual void OnRepeat(const RepeatEvent&) {}
};

}  // namespace dcsim
