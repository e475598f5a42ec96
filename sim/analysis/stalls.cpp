#include "sim/analysis/stalls.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace dcsim {
namespace {

std::vector<const Span*> ComputeSpans(const Timeline& timeline) {
  std::vector<const Span*> spans;
  for (const Span& span : timeline.spans) {
    if (span.stream == static_cast<std::uint8_t>(StreamRole::kCompute)) {
      spans.push_back(&span);
    }
  }
  std::sort(spans.begin(), spans.end(),
            [](const Span* a, const Span* b) { return a->task < b->task; });
  return spans;
}

}  // namespace

std::vector<ComputeStall> FindComputeStalls(const Timeline& timeline, const Schedule& schedule) {
  std::map<std::tuple<StallReason, TaskKind>, ComputeStall> by_cause;
  const auto book = [&](StallReason reason, TaskKind blocker, std::int64_t ns) {
    if (ns > 0) {
      ComputeStall& stall = by_cause[{reason, blocker}];
      stall.reason = reason;
      stall.blocker = blocker;
      stall.time += Duration::FromNs(ns);
      ++stall.stalls;
    }
  };
  std::int64_t free = 0;
  for (const Span* span : ComputeSpans(timeline)) {
    const bool event = span->stall == StallReason::kEvent && !span->blocker.is_none();
    book(span->stall, event ? schedule.task(span->blocker).kind : TaskKind::kCompute,
         span->start.ns() - free);
    free = std::max(free, span->end.ns());
  }
  book(StallReason::kNone, TaskKind::kCompute, timeline.step_time.ns() - free);
  std::vector<ComputeStall> stalls;
  stalls.reserve(by_cause.size());
  for (const auto& [cause, stall] : by_cause) {
    stalls.push_back(stall);
  }
  std::stable_sort(stalls.begin(), stalls.end(),
                   [](const ComputeStall& a, const ComputeStall& b) { return a.time > b.time; });
  return stalls;
}

}  // namespace dcsim
