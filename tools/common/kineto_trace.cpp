#include "tools/common/kineto_trace.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>
#include <set>

#include "model/base/error.h"
#include "tools/common/file.h"
#include "tools/common/kineto_events.h"

namespace dcsim {
namespace {

// A trace of ten steps of an 8B model, with its host's calls, has 0.3 GB.
constexpr Bytes kLargestTrace = Bytes::GiB(2);

/// The trace itself, or of a folder, in which tensorboard_trace_handler leaves one a rank, the
/// first.
std::string TraceFile(const std::string& path, std::ostream& notes) {
  if (!IsDirectory(path)) {
    return path;
  }
  std::vector<std::string> traces;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string file = entry.path().string();
    if (file.ends_with(".json") || file.ends_with(".json.gz")) {
      traces.push_back(file);
    }
  }
  if (traces.empty()) {
    throw Error(path + ": expected traces of torch.profiler (.json, .json.gz), found none");
  }
  std::sort(traces.begin(), traces.end());
  if (traces.size() > 1) {
    notes << path << ": of " << traces.size() << " traces the first is taken, "
          << std::filesystem::path(traces.front()).filename().string() << "\n";
  }
  return traces.front();
}

/// Those of the first device, by start.
std::vector<TracedEvent> OfOneDevice(std::vector<TracedEvent> events,
                                     const std::string& file,
                                     std::ostream& notes) {
  std::set<std::int64_t> devices;
  for (const TracedEvent& event : events) {
    devices.insert(event.device);
  }
  if (devices.empty()) {
    throw Error(file + ": has no events of a GPU; profile with ProfilerActivity.CUDA");
  }
  if (devices.size() > 1) {
    notes << file << ": of " << devices.size() << " GPUs the first is taken, device "
          << *devices.begin() << "\n";
    std::erase_if(events, [&](const TracedEvent& e) { return e.device != *devices.begin(); });
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const TracedEvent& a, const TracedEvent& b) { return a.start < b.start; });
  return events;
}

/// The marker that covers a time, or null. Markers of steps do not overlap.
const StepMarker* FindMarker(const std::vector<StepMarker>& markers, SimTime time) {
  const auto next = std::partition_point(markers.begin(), markers.end(),
                                         [time](const StepMarker& m) { return m.start <= time; });
  return next != markers.begin() && time < std::prev(next)->end ? &*std::prev(next) : nullptr;
}

/// The step's marker by the call that launched an event. Where the profiler lost that call, by the
/// GPU's own markers or, without these, by the event's start.
const StepMarker* FindStep(const KinetoEvents& read, const TracedEvent& event) {
  const auto launch = read.launches.find(event.launch);
  if (launch != read.launches.end() && !read.host_markers.empty()) {
    return FindMarker(read.host_markers, launch->second);
  }
  return FindMarker(read.gpu_markers.empty() ? read.host_markers : read.gpu_markers, event.start);
}

SimTime LastEnd(const std::vector<TracedEvent>& events) {
  SimTime last = events.front().end;
  for (const TracedEvent& event : events) {
    last = std::max(last, event.end);
  }
  return last;
}

/// The events by step. Those outside of every step belong to the profiler's warm-up.
std::vector<TracedStep> CutIntoSteps(const KinetoEvents& read,
                                     const std::vector<TracedEvent>& events) {
  std::map<std::int64_t, TracedStep> by_number;
  std::map<std::int64_t, Duration> marked;
  for (const TracedEvent& event : events) {
    if (const StepMarker* marker = FindStep(read, event)) {
      by_number[marker->number].events.push_back(event);
      marked[marker->number] = marker->end - marker->start;
    }
  }
  std::vector<TracedStep> steps;
  for (auto& [number, step] : by_number) {
    step.number = number;
    step.start = step.events.front().start;
    step.end = std::max(step.start + marked[number], LastEnd(step.events));
    if (!steps.empty() && *steps.back().number == number - 1) {
      steps.back().end = step.start;
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

TracedStep WholeTrace(std::vector<TracedEvent> events) {
  TracedStep step;
  step.start = events.front().start;
  step.end = LastEnd(events);
  step.events = std::move(events);
  return step;
}

void TakeStep(std::vector<TracedStep>& steps, std::int64_t number, const std::string& file) {
  const bool marked = !steps.empty() && steps.front().number.has_value();
  const std::string range = marked
                                ? "those with events are " + std::to_string(*steps.front().number) +
                                      " to " + std::to_string(*steps.back().number)
                                : "it has no step markers";
  std::erase_if(steps, [number](const TracedStep& step) { return step.number != number; });
  if (steps.empty()) {
    throw Error(file + ": has no ProfilerStep#" + std::to_string(number) + "; " + range);
  }
}

}  // namespace

KinetoTrace LoadKinetoTrace(const std::string& path,
                            std::optional<std::int64_t> step,
                            std::ostream& notes) {
  KinetoTrace trace;
  trace.file = TraceFile(path, notes);
  KinetoEvents read = ParseKinetoEvents(ReadFile(trace.file, kLargestTrace), trace.file);
  std::vector<TracedEvent> events = OfOneDevice(std::move(read.events), trace.file, notes);
  const auto earlier = [](const StepMarker& a, const StepMarker& b) { return a.start < b.start; };
  std::sort(read.host_markers.begin(), read.host_markers.end(), earlier);
  std::sort(read.gpu_markers.begin(), read.gpu_markers.end(), earlier);
  trace.steps = CutIntoSteps(read, events);
  if (trace.steps.empty() && !read.host_markers.empty()) {
    throw Error(trace.file + ": no event of the GPU lies in one of its ProfilerStep#N");
  }
  if (trace.steps.empty()) {
    trace.steps.push_back(WholeTrace(std::move(events)));
    if (!step) {
      notes << trace.file
            << ": has no step markers (ProfilerStep#N), so all of it is taken as one step\n";
    }
  }
  if (step) {
    TakeStep(trace.steps, *step, trace.file);
  }
  trace.names = std::move(read.names);
  trace.ranks = read.ranks;
  return trace;
}

}  // namespace dcsim
