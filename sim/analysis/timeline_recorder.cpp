#include "sim/analysis/timeline_recorder.h"

namespace dcsim {

void TimelineRecorder::OnStepEnded(const StepEvent& event) {
  if (event.step + 1 == step_) {
    start_ = event.time;
  }
  if (event.step == step_) {
    end_ = event.time;
  }
}

void TimelineRecorder::OnTaskStarted(const TaskEvent& event) {
  if (event.step == step_) {
    running_[event.stream] = event;
  }
}

void TimelineRecorder::OnTaskEnded(const TaskSpan& span) {
  if (span.step != step_) {
    return;
  }
  running_[span.stream].reset();
  Span kept;
  kept.task = span.task;
  kept.stream = span.stream;
  kept.stall = span.stall;
  kept.blocker = span.blocker;
  kept.start = span.start;
  kept.end = span.end;
  kept_.spans.push_back(kept);
}

void TimelineRecorder::OnHost(const HostSpan& span) {
  if (span.step == step_) {
    kept_.host.push_back({span.task, 0, span.waited, span.start, span.end});
  }
}

void TimelineRecorder::OnMemory(const MemoryEvent& event) {
  if (event.step == step_ && !event.task.is_none()) {
    kept_.memory.push_back({event.task, 0, event.time, event.live, event.stats->allocated.current,
                            event.stats->active.current, event.stats->reserved.current});
  }
}

Timeline TimelineRecorder::TimelineUntil(const Simulation& stopped, const std::string& what) {
  const Stop& stop = *stopped.stop;
  for (const auto& task : running_) {
    if (task) {
      Span span;
      span.task = task->task;
      span.stream = task->stream;
      span.start = task->time;
      span.end = stop.time;
      kept_.spans.push_back(span);
    }
  }
  if (stopped.outcome == Outcome::kOutOfMemory && !stop.task.is_none()) {
    kept_.host.push_back({stop.task, 0, /*waited=*/false, stop.began, stop.time});
    kept_.memory.push_back({stop.task, 0, stop.time, stopped.live_after_step,
                            stopped.memory.allocated.current, stopped.memory.active.current,
                            stopped.memory.reserved.current});
  }
  if (start_ == SimTime() && !kept_.host.empty()) {  // the step before has not ended
    start_ = kept_.host.front().start;
  }
  end_ = stop.time;
  Timeline until = timeline();
  until.stop = TimelineStop{stop.task, SimTime() + (end_ - start_), what};
  return until;
}

Timeline TimelineRecorder::timeline() const {
  Timeline timeline = kept_;
  timeline.step_time = end_ - start_;
  const auto shift = [this](SimTime& time) { time = SimTime() + (time - start_); };
  for (Span& span : timeline.spans) {
    shift(span.start);
    shift(span.end);
  }
  for (HostWork& work : timeline.host) {
    shift(work.start);
    shift(work.end);
  }
  for (MemorySample& sample : timeline.memory) {
    shift(sample.time);
  }
  return timeline;
}

}  // namespace dcsim
