#include <algorithm>

#include "model/base/scaled.h"
#include "sim/engine/simulation_run.h"

namespace dcsim {

bool SimulationRun::HostWaitsOver() const {
  for (const StreamWait& wait : program_.waits(host_.task)) {
    if (!Passed(wait, host_.step)) {
      return false;
    }
  }
  return true;
}

bool SimulationRun::AllStreamsIdle() const {
  return progress_.ended == progress_.issued;
}

/// Whether the host has to wait until it can launch the task's kernels: a task of more kernels than
/// the queue holds goes when it is empty.
bool SimulationRun::NeedsRoom() {
  if (options_.launch_queue == 0 || program_.entry(host_.task).stream != kCompute) {
    return false;
  }
  host_.room = std::max(0, options_.launch_queue - program_.cost(host_.task).launches);
  return queued_ > host_.room;
}

void SimulationRun::BeginStep() {
  if (host_.step == options_.warmup_steps) {
    memory_.ResetPeaks();
    host_.warmup_retries = memory_.stats().retries;
  }
  if (finder_) {
    finder_->BeginStep();
    micro_step_ = 0;
    next_micro_step_ = static_cast<std::uint32_t>(finder_->micro_steps().first(1));
  }
  Notify(&Observer::OnStepIssued, StepEvent{host_.step, SimTime::FromNs(now_)});
}

/// The host turns to its next task.
void SimulationRun::BeginTask() {
  while (host_.task == program_.task_count() && host_.step < steps_) {
    if (host_.step < options_.awaited_steps && !AllStreamsIdle()) {
      host_.phase = HostPhase::kAwaitingStep;
      host_event_ = kNever;
      return;
    }
    if (finder_) {
      finder_->EndStep();
    }
    host_.task = 0;
    ++host_.step;
    EndSteps();
  }
  if (host_.step == steps_) {
    host_.phase = HostPhase::kDone;
    host_event_ = kNever;
    return;
  }
  host_.started = now_;
  host_.waited = false;
  if (host_.task == 0) {
    BeginStep();
  } else if (host_.task == next_micro_step_) [[unlikely]] {
    BeginMicroStep();
  }
  const bool on_host = program_.entry(host_.task).stream == Task::kNoStream;
  if (on_host && !HostWaitsOver()) {
    host_.phase = HostPhase::kWaiting;
    host_.waited = true;
    host_event_ = kNever;
    return;
  }
  StartTask();
}

/// Allocator calls, then the call itself.
void SimulationRun::StartTask() {
  if (program_.entry(host_.task).moves_memory) {
    AfterMemory(memory_.Run(TaskId(host_.task), host_.step, progress_));
  } else {
    AfterMemory(StepMemory::Status::kDone);
  }
}

void SimulationRun::AfterMemory(StepMemory::Status status) {
  if (memory_.keeps_log()) [[unlikely]] {
    ReportAllocator(TaskId(host_.task));
  }
  if (status == StepMemory::Status::kOutOfMemory) [[unlikely]] {
    Stopped(Outcome::kOutOfMemory, TaskId(host_.task), host_.step);
    return;
  }
  if (status == StepMemory::Status::kNeedsSynchronize) [[unlikely]] {
    host_.phase = HostPhase::kSynchronizing;
    host_.waited = true;
    host_event_ = AllStreamsIdle() ? now_ : kNever;
    return;
  }
  host_.phase = HostPhase::kIssuing;
  if (program_.entry(host_.task).moves_memory && !observers_.empty()) {
    ReportMemory(TaskId(host_.task));
  }
  host_event_ = now_ + BusyTime().ns();
}

/// A call of the host's task, which is priced at this.
Duration SimulationRun::AtHostPace(Duration call) const {
  return options_.host_pace.empty() ? call : Scaled(call, options_.host_pace[host_.task].slowdown);
}

/// What the allocator's events cost that have come since they were last paid for.
Duration SimulationRun::AllocatorEvents() {
  const std::uint64_t recorded = memory_.recorded_events();
  const std::uint64_t taken_back = memory_.taken_back();
  const Duration busy =
      options_.record * static_cast<std::int64_t>(recorded - host_.recorded_events) +
      options_.take_back * static_cast<std::int64_t>(taken_back - host_.taken_back);
  host_.recorded_events = recorded;
  host_.taken_back = taken_back;
  const bool included = !options_.host_pace.empty() && options_.host_pace[host_.task].read;
  return included ? Duration() : AtHostPace(busy);
}

/// What the task costs the host from now on until it is issued: its first call, the return from a
/// wait, and the allocator's calls of the driver.
Duration SimulationRun::BusyTime() {
  Duration busy = AtHostPace(program_.cost(host_.task).host - program_.cost(host_.task).further);
  if (host_.waited) {
    busy += options_.synchronize;
  }
  if (host_.step == 0 && !options_.first_calls.empty()) [[unlikely]] {
    busy += options_.first_calls[host_.task];
  }
  if (memory_.recorded_events() != 0) {
    busy += AllocatorEvents();
  }
  const std::size_t calls = memory_.driver_calls();
  if (calls != host_.driver_calls) [[unlikely]] {
    busy += options_.segment * static_cast<std::int64_t>(calls - host_.driver_calls);
    if (options_.give_back_rate > BytesPerSecond()) {
      busy += TransferTime(memory_.given_back_since(host_.driver_calls), options_.give_back_rate);
    }
    host_.driver_calls = calls;
  }
  return busy;
}

/// The host's time is over: it issues its task, or goes on after a wait.
void SimulationRun::StepHost() {
  switch (host_.phase) {
    case HostPhase::kIssuing:
      if (NeedsRoom()) {
        host_.phase = HostPhase::kQueueFull;
        host_.waited = true;
        host_event_ = kNever;
        return;
      }
      [[fallthrough]];
    case HostPhase::kQueueFull:
      IssueTask();
      return;
    case HostPhase::kLaunching:
      EndTask();
      return;
    case HostPhase::kWaiting:
      StartTask();
      return;
    case HostPhase::kSynchronizing:
      AfterMemory(memory_.Resume(progress_));
      return;
    case HostPhase::kAwaitingStep:
      BeginTask();
      return;
    case HostPhase::kDone:
      return;
  }
}

/// All launches of the task are made.
void SimulationRun::EndTask() {
  if (!observers_.empty()) {
    Notify(&Observer::OnHost,
           HostSpan{TaskId(host_.task), host_.step, SimTime::FromNs(host_.started),
                    SimTime::FromNs(now_), host_.waited});
  }
  ++host_.task;
  BeginTask();
}

/// The task's first call is over: it is on its stream, and the host makes its other launches.
void SimulationRun::IssueTask() {
  ++result_.tasks_executed;
  const std::uint8_t stream = program_.entry(host_.task).stream;
  if (stream != Task::kNoStream) {
    ++progress_.issued[stream];
    queued_ += stream == kCompute ? program_.cost(host_.task).launches : 0;
    to_settle_ |= 1U << stream;
  }
  if (const Duration further = AtHostPace(program_.cost(host_.task).further);
      further > Duration()) {
    host_.phase = HostPhase::kLaunching;
    host_event_ = now_ + further.ns();
  } else {
    EndTask();
  }
}

/// A stream has moved on; perhaps that is what the host waits for.
void SimulationRun::WakeHost() {
  const bool over =
      (host_.phase == HostPhase::kWaiting && HostWaitsOver()) ||
      (host_.phase == HostPhase::kQueueFull && queued_ <= host_.room) ||
      ((host_.phase == HostPhase::kSynchronizing || host_.phase == HostPhase::kAwaitingStep) &&
       AllStreamsIdle());
  if (over && host_event_ == kNever) {
    host_event_ = now_;
  }
}

void SimulationRun::ReportAllocator(TaskId task) {
  for (const LoggedCall& logged : memory_.TakeLog()) {
    Notify(&Observer::OnAllocator,
           AllocatorEvent{task, host_.step, SimTime::FromNs(now_), logged.call, logged.buffer});
  }
}

void SimulationRun::ReportMemory(TaskId task) {
  Notify(&Observer::OnMemory,
         MemoryEvent{task, host_.step, SimTime::FromNs(now_), memory_.live(), &memory_.stats()});
}

}  // namespace dcsim
