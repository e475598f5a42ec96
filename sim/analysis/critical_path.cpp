#include "sim/analysis/critical_path.h"

#include <algorithm>

namespace dcsim {
namespace {

/// Spans and host work of one timeline by task.
struct TimelineIndex {
  std::vector<const Span*> spans;
  std::vector<std::size_t> host_at;  // position in timeline.host; its size: none
};

TimelineIndex IndexTimeline(const Timeline& timeline, const Schedule& schedule) {
  TimelineIndex index;
  index.spans.resize(schedule.task_count());
  index.host_at.resize(schedule.task_count(), timeline.host.size());
  for (const Span& span : timeline.spans) {
    index.spans[span.task.index()] = &span;
  }
  for (std::size_t i = 0; i < timeline.host.size(); ++i) {
    index.host_at[timeline.host[i].task.index()] = i;
  }
  return index;
}

const Span* LastSpan(const Timeline& timeline) {
  const auto last = std::max_element(timeline.spans.begin(), timeline.spans.end(),
                                     [](const Span& a, const Span& b) { return a.end < b.end; });
  return last == timeline.spans.end() ? nullptr : &*last;
}

/// The latest of the tasks that the host waited for at `task`: its events, or everything issued
/// before when its allocation had to be tried again.
const Span* LastWaited(const TimelineIndex& index, const Schedule& schedule, TaskId task) {
  const Span* last = nullptr;
  const auto take = [&](std::size_t waited) {
    const Span* span = index.spans[waited];
    last = span != nullptr && (last == nullptr || span->end > last->end) ? span : last;
  };
  if (schedule.task(task).on_host() && !schedule.waits(task).empty()) {
    for (const TaskId waited : schedule.waits(task)) {
      take(waited.index());
    }
    return last;
  }
  for (std::size_t i = 0; i < task.index(); ++i) {
    take(i);
  }
  return last;
}

/// The host's part before it issued `task`: back to where it last waited. Gives the span it waited
/// for, or null at the start of the step.
const Span* AddHostPiece(const Timeline& timeline,
                         const Schedule& schedule,
                         const TimelineIndex& index,
                         const Span& issued,
                         std::vector<CriticalPiece>& pieces) {
  std::size_t at = index.host_at[issued.task.index()];
  CriticalPiece piece{issued.task, true, SimTime(), issued.start};
  const Span* waited = nullptr;
  for (; at < timeline.host.size(); --at) {
    const HostWork& work = timeline.host[at];
    if (work.waited && (waited = LastWaited(index, schedule, work.task)) != nullptr) {
      piece.start = std::max(waited->end, SimTime());
      break;
    }
    if (at == 0) {
      break;
    }
  }
  if (piece.end > piece.start) {
    pieces.push_back(piece);
  }
  return waited;
}

}  // namespace

std::vector<CriticalPiece> FindStepCriticalPath(const Timeline& timeline,
                                                const Schedule& schedule) {
  const TimelineIndex index = IndexTimeline(timeline, schedule);
  std::vector<CriticalPiece> pieces;
  const Span* span = LastSpan(timeline);
  // The host's launches behind the first of its last task may end last.
  if (span != nullptr && !timeline.host.empty() && timeline.host.back().end > span->end) {
    Span launches = *span;
    launches.task = timeline.host.back().task;
    launches.start = timeline.host.back().end;
    span = AddHostPiece(timeline, schedule, index, launches, pieces);
  }
  while (span != nullptr && span->end > SimTime()) {
    if (span->end > span->start) {
      pieces.push_back({span->task, false, std::max(span->start, SimTime()), span->end});
    }
    if (span->start <= SimTime()) {
      break;  // what let it start belongs to the step before
    }
    span = span->blocker.is_none() ? AddHostPiece(timeline, schedule, index, *span, pieces)
                                   : index.spans[span->blocker.index()];
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace dcsim
