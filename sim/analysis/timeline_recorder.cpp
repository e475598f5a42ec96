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

void TimelineRecorder::OnTaskEnded(const TaskSpan& span) {
  if (span.step != step_) {
    return;
  }
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
