#include "exec/measure/measured_timeline.h"

#include <algorithm>

namespace dcsim::exec {
namespace {

bool IsCollective(const Schedule& schedule, const KernelRecord& record) {
  return schedule.FindCollective(TaskId(record.label)) != nullptr;
}

/// A host task launches on the compute stream: the copies of a micro-step's inputs do.
std::uint8_t StreamOf(const Schedule& schedule, const KernelRecord& record) {
  const Task& task = schedule.task(TaskId(record.label));
  return task.on_host() ? static_cast<std::uint8_t>(StreamRole::kCompute) : task.stream;
}

bool IsCompute(const Schedule& schedule, const KernelRecord& record) {
  return StreamOf(schedule, record) == static_cast<std::uint8_t>(StreamRole::kCompute);
}

std::uint64_t FirstStart(const std::vector<KernelRecord>& records) {
  return records.empty() ? 0 : records.front().start_ns;
}

std::uint64_t ComputeStreamEnd(const std::vector<KernelRecord>& records, const Schedule& schedule) {
  std::uint64_t end = 0;
  for (const KernelRecord& record : records) {
    if (record.label != KernelRecord::kNoLabel && IsCompute(schedule, record)) {
      end = std::max(end, record.end_ns);
    }
  }
  return end;
}

void AddBusy(const Timeline& timeline, const Schedule& schedule, StepTraces& traces) {
  for (const Span& span : timeline.spans) {
    if (const Collective* collective = schedule.FindCollective(span.task)) {
      traces.busy[static_cast<std::size_t>(collective->kind)] += span.end - span.start;
    }
  }
}

template <typename Wanted>
Intervals IntervalsOf(const std::vector<KernelRecord>& records, Wanted wanted) {
  Intervals intervals;
  for (const KernelRecord& record : records) {
    if (record.label != KernelRecord::kNoLabel && wanted(record)) {
      intervals.emplace_back(record.start_ns, record.end_ns);
    }
  }
  return Union(std::move(intervals));
}

}  // namespace

Timeline TimelineOf(const std::vector<KernelRecord>& records,
                    const Schedule& schedule,
                    std::uint64_t step_start_ns,
                    int rank) {
  std::vector<Span> by_task(schedule.task_count());
  for (const KernelRecord& record : records) {
    if (record.label == KernelRecord::kNoLabel) {
      continue;
    }
    Span& span = by_task[record.label];
    const auto at = [step_start_ns](std::uint64_t ns) {
      return SimTime::FromNs(static_cast<std::int64_t>(ns - step_start_ns));
    };
    const bool first = span.task.is_none();
    span.task = TaskId(record.label);
    span.rank = static_cast<std::uint16_t>(rank);
    span.stream = StreamOf(schedule, record);
    span.start = first ? at(record.start_ns) : std::min(span.start, at(record.start_ns));
    span.end = first ? at(record.end_ns) : std::max(span.end, at(record.end_ns));
  }
  Timeline timeline;
  timeline.origin = Origin::kMeasured;
  SimTime last;
  for (const Span& span : by_task) {
    if (!span.task.is_none()) {
      timeline.spans.push_back(span);
      last = std::max(last, span.end);
    }
  }
  std::stable_sort(timeline.spans.begin(), timeline.spans.end(),
                   [](const Span& a, const Span& b) { return a.end < b.end; });
  timeline.step_time = last - SimTime();
  return timeline;
}

Intervals ComputeIntervals(const std::vector<KernelRecord>& records, const Schedule& schedule) {
  return IntervalsOf(records, [&schedule](const KernelRecord& record) {
    return IsCompute(schedule, record) && !IsCollective(schedule, record);
  });
}

Intervals CollectiveIntervals(const std::vector<KernelRecord>& records, const Schedule& schedule) {
  return IntervalsOf(
      records, [&schedule](const KernelRecord& record) { return IsCollective(schedule, record); });
}

StepTraces MeanTraces(const std::vector<std::vector<KernelRecord>>& steps,
                      std::size_t before,
                      const Schedule& schedule) {
  Intervals compute;
  for (const auto& records : steps) {
    const Intervals of_step = ComputeIntervals(records, schedule);
    compute.insert(compute.end(), of_step.begin(), of_step.end());
  }
  compute = Union(std::move(compute));
  StepTraces traces;
  for (std::size_t step = before; step < steps.size(); ++step) {
    traces.last_start_ns =
        step == 0 ? FirstStart(steps[0]) : ComputeStreamEnd(steps[step - 1], schedule);
    const std::uint64_t end = ComputeStreamEnd(steps[step], schedule);
    traces.step_time += Duration::FromNs(static_cast<std::int64_t>(end - traces.last_start_ns));
    traces.compute += Length(ComputeIntervals(steps[step], schedule));
    traces.exposed_communication +=
        LengthOutside(CollectiveIntervals(steps[step], schedule), compute);
    AddBusy(TimelineOf(steps[step], schedule, traces.last_start_ns, 0), schedule, traces);
  }
  const auto count = static_cast<std::int64_t>(steps.size() - before);
  const auto divide = [count](Duration& sum) { sum = Duration::FromNs(sum.ns() / count); };
  divide(traces.step_time);
  divide(traces.compute);
  divide(traces.exposed_communication);
  std::for_each(traces.busy.begin(), traces.busy.end(), divide);
  return traces;
}

}  // namespace dcsim::exec
