#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "sim/engine/gpu_sharing.h"
#include "sim/engine/repeat_finder.h"
#include "sim/engine/simulate.h"
#include "sim/engine/step_memory.h"
#include "sim/engine/step_program.h"

namespace dcsim {

/// One stream between two events.
struct StreamState {
  std::uint32_t next = 0;  // position, within the step, of the task that runs or runs next
  std::uint32_t step = 0;  // of that task
  StallReason blocked_by = StallReason::kNone;  // why the next task, issued already, cannot start
  StreamWait blocked_on;                        // of kEvent: what it waits for
  std::int64_t blocked_since = 0;
  TaskId last;  // that ended on it
  std::int64_t free_since = 0;
  std::int64_t started = 0;                // of the running task
  StallReason stall = StallReason::kNone;  // of the running task
  TaskId blocker;
};

/// The collectives of one communicator, which run one after the other in issue order.
struct CommunicatorState {
  std::uint64_t ended = 0;  // over all steps
  TaskId last;              // that ended
};

/// What the host thread is doing.
enum class HostPhase : std::uint8_t {
  kIssuing,        // busy with the call; the task is put on its stream when the time is over
  kWaiting,        // for the events of a host task
  kSynchronizing,  // for all streams, so that the allocator can try again
  kQueueFull,      // for room in the compute stream's queue
  kLaunching,      // busy with launches behind the first of the task that it has issued
  kAwaitingStep,   // for all streams, at the end of a step
  kDone,
};

struct HostState {
  HostPhase phase = HostPhase::kIssuing;
  std::uint32_t task = 0;
  std::uint32_t step = 0;
  std::int64_t started = 0;  // work on the task
  bool waited = false;
  std::int64_t room = 0;         // of kQueueFull: it goes on with at most so many kernels queued
  std::size_t driver_calls = 0;  // of the allocator, that have been paid for
  std::uint64_t recorded_events = 0;  // the same
  std::uint64_t taken_back = 0;       // the same
  std::int64_t warmup_retries = 0;    // of the allocator, before the measured steps
};

/// Everything that changes while a simulation runs, and what changes it. Its actors are the streams
/// and, behind them, the host; each has at most one event to come. The loop is in simulate.cpp, the
/// host in simulation_host.cpp, the streams in simulation_streams.cpp.
class SimulationRun {
 public:
  /// All but the rank must outlive it.
  SimulationRun(const Schedule& schedule,
                const StepProgram& program,
                const SimulationOptions& options,
                const GpuSharing::Options& sharing,
                std::span<Observer* const> observers,
                std::uint32_t rank = 0)
      : schedule_(schedule),
        program_(program),
        options_(options),
        observers_(observers),
        memory_(schedule, options.allocator),
        gpu_(sharing, rank),
        steps_(options.warmup_steps + options.measured_steps) {
    if (schedule.repetition().left_out > 0 && rank == 0) {
      finder_.emplace(schedule);
    }
    const auto hears = [](const Observer* observer) { return observer->HearsAllocator(); };
    if (std::any_of(observers.begin(), observers.end(), hears)) {
      memory_.KeepLog();
    }
  }

  /// The rank alone, or with others, whose collectives wait for each other: what the first sees.
  Simulation Run();
  static Simulation RunTogether(std::span<SimulationRun> runs);

  // For RunInLockstep.
  /// What happens next, at kNever where nothing does any more.
  struct Next {
    std::size_t actor = 0;
    std::int64_t at = GpuSharing::kNever;
  };
  Next NextEvent() const;
  void Step(const Next& next);
  GpuSharing& gpu() { return gpu_; }
  bool stopped() const { return stopped_; }

 private:
  static constexpr std::int64_t kNever = GpuSharing::kNever;
  static constexpr std::size_t kHost = kStreamCount;
  static constexpr std::uint32_t kNoTask = std::numeric_limits<std::uint32_t>::max();
  static constexpr auto kCompute = static_cast<std::size_t>(StreamRole::kCompute);

  bool Begin();
  void Stopped(Outcome outcome, TaskId task, std::uint32_t step);
  void StopAtDeadlock();
  void ReportKernels();
  Simulation Result();
  void EndSteps();

  // Host.
  void BeginTask();
  void BeginStep();
  void StartTask();
  void AfterMemory(StepMemory::Status status);
  Duration AtHostPace(Duration call) const;
  Duration AllocatorEvents();
  Duration BusyTime();
  void StepHost();
  void IssueTask();
  void EndTask();
  bool HostWaitsOver() const;
  bool AllStreamsIdle() const;
  bool NeedsRoom();
  void WakeHost();
  void ReportMemory(TaskId task);
  void ReportAllocator(TaskId task);

  // Micro-steps that repeat.
  void BeginMicroStep();
  void AddState(const SimulationRun& first, MicroStepState& at) const;
  void AddHost(const SimulationRun& first, MicroStepState& at) const;
  void AddStream(std::size_t stream, const SimulationRun& first, MicroStepState& at) const;
  void LeaveOut(const RepeatFinder::Stretch& stretch, std::uint64_t tasks);
  void Skip(const MicroSteps& steps, std::size_t from, std::size_t skipped);
  void RequireKnownStop() const;

  // Streams.
  void TryStart(std::size_t stream);
  StallReason WhyNot(std::size_t stream, std::uint32_t task, StreamWait& waited) const;
  std::int64_t WaitingDelay() const;
  void Start(std::size_t stream, std::uint32_t task);
  void SetStall(StreamState& state, std::uint32_t task);
  void End(std::size_t stream);
  void WakeStreams(std::size_t stream, bool collective);
  void SettleStreams();
  bool Passed(const StreamWait& wait, std::uint32_t step) const {
    const std::uint64_t count = program_.stream_tasks(wait.stream).size();
    return wait.position != StreamWait::kNever &&
           progress_.ended[wait.stream] > step * count + wait.position;
  }

  template <typename Method, typename Event>
  void Notify(Method method, const Event& event) {
    for (Observer* observer : observers_) {
      (observer->*method)(event);
    }
  }

  const Schedule& schedule_;
  const StepProgram& program_;
  const SimulationOptions& options_;
  std::span<Observer* const> observers_;
  StepMemory memory_;
  GpuSharing gpu_;
  std::uint32_t steps_;

  std::int64_t now_ = 0;
  std::int64_t host_event_ = kNever;
  std::array<StreamState, kStreamCount> streams_;
  StreamProgress progress_;
  std::int64_t queued_ = 0;  // kernels on the compute stream that have not ended
  std::array<CommunicatorState, StepProgram::kMaxCommunicators> communicators_;
  HostState host_;
  std::uint32_t to_settle_ = 0;       // bit s: stream s may be able to start its next task
  std::uint32_t without_kernel_ = 0;  // of GpuSharing, as observers know it
  bool stopped_ = false;              // out of memory, or a deadlock

  // Of a schedule that leaves micro-steps out, on the first rank.
  struct Mark {
    std::int64_t time = 0;
    std::uint64_t tasks = 0;  // executed
  };
  std::optional<RepeatFinder> finder_;
  std::span<SimulationRun> ranks_;           // where several are simulated: all of them
  std::size_t micro_step_ = 0;               // that the host issues
  std::uint32_t next_micro_step_ = kNoTask;  // its first task
  std::vector<Mark> marks_;                  // of this step, by micro-step
  std::int64_t left_out_ = 0;                // ns of micro-steps that were left out, so far
  Simulation result_;
};

}  // namespace dcsim
