#include <algorithm>
#include <bit>

#include "sim/engine/simulation_run.h"

namespace dcsim {

/// Why the next task of a stream, issued already, cannot start: kNone when it can; `waited` for
/// what it waits with kEvent.
StallReason SimulationRun::WhyNot(std::size_t stream,
                                  std::uint32_t task,
                                  StreamWait& waited) const {
  const StreamState& state = streams_[stream];
  for (const StreamWait& wait : program_.waits(task)) {
    if (!Passed(wait, state.step)) {
      waited = wait;
      return StallReason::kEvent;
    }
  }
  const auto& entry = program_.entry(task);
  if (entry.collective != StepProgram::kNoCollective) {
    const std::uint64_t before =
        std::uint64_t{state.step} * program_.collectives_on(entry.communicator) + entry.collective;
    if (communicators_[entry.communicator].ended != before) {
      return StallReason::kCommunicator;
    }
  }
  return StallReason::kNone;
}

/// How much later a kernel of compute starts now because other streams wait: those that have waited
/// before and go on waiting.
std::int64_t SimulationRun::WaitingDelay() const {
  std::int64_t delay = 0;
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    const StreamState& other = streams_[s];
    if (options_.waiting_delays[s] == Duration() || other.blocked_by == StallReason::kNone ||
        other.blocked_since >= now_) {
      continue;
    }
    StreamWait waited;
    if (WhyNot(s, program_.stream_tasks(s)[other.next], waited) != StallReason::kNone) {
      delay += options_.waiting_delays[s].ns();
    }
  }
  return delay;
}

void SimulationRun::TryStart(std::size_t stream) {
  StreamState& state = streams_[stream];
  if (gpu_.running(stream) || progress_.ended[stream] == progress_.issued[stream]) {
    return;
  }
  const std::uint32_t task = program_.stream_tasks(stream)[state.next];
  const StallReason reason = WhyNot(stream, task, state.blocked_on);
  if (reason == StallReason::kNone) {
    Start(stream, task);
    return;
  }
  state.blocked_since = state.blocked_by == StallReason::kNone ? now_ : state.blocked_since;
  state.blocked_by = reason;
}

/// Why the task has not started before: what blocked it last, or else that it was not issued.
void SimulationRun::SetStall(StreamState& state, std::uint32_t task) {
  const bool late = now_ != state.free_since || state.last.is_none();
  state.stall = late ? state.blocked_by : StallReason::kNone;
  if (!late) {
    state.blocker = state.last;
  } else if (state.blocked_by == StallReason::kEvent) {
    const StreamWait& wait = state.blocked_on;
    state.blocker = TaskId(program_.stream_tasks(wait.stream)[wait.position]);
  } else if (state.blocked_by == StallReason::kCommunicator) {
    state.blocker = communicators_[program_.entry(task).communicator].last;
  } else {
    state.stall = StallReason::kHost;
    state.blocker = TaskId::None();
  }
  state.blocked_by = StallReason::kNone;
}

void SimulationRun::Start(std::size_t stream, std::uint32_t task) {
  StreamState& state = streams_[stream];
  const bool at_once = now_ == state.free_since && !state.last.is_none();
  SetStall(state, task);
  state.started = now_;
  GpuTask work = GpuTask::Of(program_.cost(task), stream);
  const std::int64_t delays =
      stream == kCompute && work.device > 0 ? work.launches * WaitingDelay() : 0;
  work.device += delays;
  if (!observers_.empty()) {
    Notify(&Observer::OnTaskStarted,
           TaskEvent{TaskId(task), state.step, static_cast<std::uint8_t>(stream),
                     SimTime::FromNs(now_), Duration::FromNs(delays)});
  }
  gpu_.Start(stream, work, at_once, program_.entry(task).position, now_);
  if (work.device == 0) {
    End(stream);
  }
}

/// Streams whose next task may be able to start because one on `stream` has ended.
void SimulationRun::WakeStreams(std::size_t stream, bool collective) {
  to_settle_ |= 1U << stream;
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    const StreamState& other = streams_[s];
    const bool wakes =
        (other.blocked_by == StallReason::kEvent && other.blocked_on.stream == stream) ||
        (other.blocked_by == StallReason::kCommunicator && collective);
    to_settle_ |= wakes ? 1U << s : 0U;
  }
}

void SimulationRun::End(std::size_t stream) {
  StreamState& state = streams_[stream];
  const std::uint32_t task = program_.stream_tasks(stream)[state.next];
  const auto& entry = program_.entry(task);
  const bool collective = entry.collective != StepProgram::kNoCollective;
  state.free_since = now_;
  state.last = TaskId(task);
  ++progress_.ended[stream];
  queued_ -= stream == kCompute ? program_.cost(task).launches : 0;
  if (collective) {
    ++communicators_[entry.communicator].ended;
    communicators_[entry.communicator].last = TaskId(task);
  }
  WakeStreams(stream, collective);
  if (!observers_.empty()) {
    TaskSpan span;
    span.task = TaskId(task);
    span.step = state.step;
    span.stream = static_cast<std::uint8_t>(stream);
    span.stall = state.stall;
    span.blocker = state.blocker;
    span.start = SimTime::FromNs(state.started);
    span.end = SimTime::FromNs(now_);
    Notify(&Observer::OnTaskEnded, span);
  }
  ++state.next;
  if (state.next == program_.stream_tasks(stream).size()) {
    state.next = 0;
    ++state.step;
    EndSteps();
  }
}

/// Starts whatever can start now, until nothing changes at this time.
void SimulationRun::SettleStreams() {
  while (to_settle_ != 0) {
    const auto stream = static_cast<std::size_t>(std::countr_zero(to_settle_));
    to_settle_ &= to_settle_ - 1;
    TryStart(stream);
  }
}

}  // namespace dcsim
