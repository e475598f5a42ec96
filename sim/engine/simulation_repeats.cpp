#include <algorithm>

#include "model/base/error.h"
#include "sim/engine/simulation_run.h"

namespace dcsim {
namespace {

constexpr std::int64_t kNoTime = GpuSharing::kNever;

std::int64_t Since(std::int64_t time, std::int64_t now) {
  return time == GpuSharing::kNever ? kNoTime : time - now;
}

}  // namespace

/// Adds the host's state, seen from where the first rank's host is.
void SimulationRun::AddHost(const SimulationRun& first, MicroStepState& at) const {
  const std::size_t here = first.micro_step_;
  const auto add = [&at](auto number) { at.state.push_back(static_cast<std::int64_t>(number)); };
  const bool in_step = host_.step == first.host_.step && host_.phase != HostPhase::kDone;
  const std::size_t own = in_step ? schedule_.task(TaskId(host_.task)).micro_step : 0;
  at.oldest = std::min(at.oldest, this == &first ? here : own);
  at.newest = std::max(at.newest, this == &first ? here - 1 : own);
  add(std::int64_t{host_.task} -
      static_cast<std::int64_t>(first.finder_->micro_steps().first(here)));
  if (this != &first) {
    add(host_.phase);
    add(Since(host_event_, first.now_));
    add(host_.waited);
    add(host_.room);
    add(Since(host_.started, first.now_));
  }
  add(memory_.driver_calls() - host_.driver_calls);
  add(memory_.recorded_events() - host_.recorded_events);
  add(memory_.taken_back() - host_.taken_back);
  add(queued_);
  add(to_settle_);
  add(without_kernel_);
}

/// Adds a stream's state, seen from where the first rank's host is.
void SimulationRun::AddStream(std::size_t stream,
                              const SimulationRun& first,
                              MicroStepState& at) const {
  const MicroSteps& names = first.finder_->micro_steps();
  const StreamState& own = streams_[stream];
  const auto add = [&at](auto number) { at.state.push_back(static_cast<std::int64_t>(number)); };
  add(progress_.issued[stream] - progress_.ended[stream]);
  add(own.last.is_none());
  add(own.free_since == first.now_);
  if (progress_.issued[stream] == progress_.ended[stream]) {
    return;
  }
  const TaskId next(program_.stream_tasks(stream)[own.next]);
  const std::size_t micro_step = own.step == first.host_.step ? schedule_.task(next).micro_step : 0;
  at.oldest = std::min(at.oldest, micro_step);
  add(names.NameOf(next, first.micro_step_));
  add(gpu_.running(stream) ? Since(own.started, first.now_) : kNoTime);
  add(own.blocked_by);
  add(own.blocked_since >= first.now_);
  if (own.blocked_by == StallReason::kEvent) {
    const StreamWait& wait = own.blocked_on;
    const auto& tasks = program_.stream_tasks(wait.stream);
    add(wait.position < tasks.size() ? names.NameOf(TaskId(tasks[wait.position]), first.micro_step_)
                                     : kNoTime);
  }
}

void SimulationRun::AddState(const SimulationRun& first, MicroStepState& at) const {
  AddHost(first, at);
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    AddStream(s, first, at);
  }
  gpu_.AddState(first.now_, at.state);
  gpu_.AddApart(first.now_, at.apart);
  at.since.push_back(gpu_.together());
  at.since.push_back(static_cast<std::int64_t>(gpu_.apart_asked()));
  const MicroSteps& names = first.finder_->micro_steps();
  memory_.AddState(
      progress_, [&](BufferId buffer) { return names.NameOf(buffer, first.micro_step_); },
      at.state);
}

/// A schedule that leaves micro-steps out begins one of its others: of the first rank.
void SimulationRun::BeginMicroStep() {
  const MicroSteps& steps = finder_->micro_steps();
  ++micro_step_;
  next_micro_step_ = static_cast<std::uint32_t>(steps.end(micro_step_));
  if (finder_->found()) {
    return;
  }
  MicroStepState at;
  at.oldest = micro_step_;
  std::uint64_t tasks = 0;
  const Repetition& repetition = finder_->repetition();
  for (const SimulationRun& run : ranks_.empty() ? std::span(this, 1) : ranks_) {
    run.AddState(*this, at);
    tasks += run.result_.tasks_executed;
  }
  if (host_.step == 0 && !options_.first_calls.empty() &&
      micro_step_ < repetition.from + repetition.period) {
    at.oldest = 0;  // modules may have loaded in the micro-step that begins
  }
  for (Observer* observer : observers_) {
    observer->OnMicroStep({host_.step, micro_step_, SimTime::FromNs(now_)}, at.state);
  }
  marks_.resize(micro_step_);
  marks_.push_back({now_, tasks});
  if (const auto stretch = finder_->Find(std::move(at))) {
    LeaveOut(*stretch, tasks);
  }
}

/// What has happened since the stretch began happens again, for all micro-steps that are left out
/// and for those of the list that it stands for.
void SimulationRun::LeaveOut(const RepeatFinder::Stretch& stretch, std::uint64_t tasks) {
  const auto times = static_cast<std::int64_t>(stretch.times);
  const Mark& begin = marks_[stretch.from];
  const std::int64_t time = times * (now_ - begin.time);
  left_out_ += time;
  result_.tasks_executed += stretch.times * (tasks - begin.tasks);
  for (SimulationRun& run : ranks_.empty() ? std::span(this, 1) : ranks_) {
    run.gpu_.LeaveOut(stretch.ages ? time : 0);
    run.Skip(finder_->micro_steps(), micro_step_, stretch.skipped);
  }
  micro_step_ += stretch.skipped;
  next_micro_step_ = static_cast<std::uint32_t>(finder_->micro_steps().end(micro_step_));
  Notify(&Observer::OnRepeat, RepeatEvent{host_.step, stretch.from, times});
}

/// Goes on `skipped` micro-steps later in the list, where `from` begins: whole periods, so that all
/// that the run has come to has its like there.
void SimulationRun::Skip(const MicroSteps& steps, std::size_t from, std::size_t skipped) {
  const std::size_t begin = steps.first(from);
  const std::size_t end = steps.first(from + skipped);
  std::array<std::uint64_t, kStreamCount> tasks{};
  for (std::size_t task = begin; task < end; ++task) {
    const auto& entry = program_.entry(task);
    if (entry.stream != Task::kNoStream) {
      ++tasks[entry.stream];
    }
    if (entry.collective != StepProgram::kNoCollective) {
      ++communicators_[entry.communicator].ended;
    }
  }
  host_.task += static_cast<std::uint32_t>(end - begin);
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    progress_.issued[s] += tasks[s];
    progress_.ended[s] += tasks[s];
    StreamState& state = streams_[s];
    state.next += static_cast<std::uint32_t>(tasks[s]);
    if (state.blocked_by == StallReason::kEvent &&
        state.blocked_on.position != StreamWait::kNever) {
      state.blocked_on.position += static_cast<std::uint32_t>(tasks[state.blocked_on.stream]);
    }
  }
  memory_.LeaveOut(tasks, TaskId(host_.task),
                   [&](BufferId buffer) { return steps.Later(buffer, skipped); });
}

/// Where a run stopped is known if what went before is: all that is left out, or nothing of the
/// step in which it stopped.
void SimulationRun::RequireKnownStop() const {
  if (schedule_.repetition().left_out == 0 || result_.stop->task.is_none()) {
    return;
  }
  const std::size_t micro_step = schedule_.task(result_.stop->task).micro_step;
  const bool before = micro_step + 1 < MicroSteps(schedule_).count();
  const bool alone = finder_ && ranks_.empty();
  const bool known = alone ? before || finder_->found() : before && result_.stop->step == 0;
  if (result_.outcome == Outcome::kDeadlock || !known) {
    throw DoesNotRepeat();
  }
}

}  // namespace dcsim
