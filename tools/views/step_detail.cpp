#include "tools/views/step_detail.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/ir/task_label.h"
#include "sim/analysis/exposure.h"

namespace dcsim {
namespace {

constexpr std::size_t kMostBars = 8000;
constexpr std::size_t kMostSamples = 2000;

/// What one stream, or the host, was busy with.
struct Busy {
  TaskId task;
  std::string_view kind;
  SimTime start;
  SimTime end;
};

/// Neighbours on one lane that are drawn as one.
struct Bar {
  Busy longest;
  SimTime start;
  SimTime end;
  std::int64_t tasks = 0;
};

/// The host's thread, then every stream; what each was busy with, by start.
using Lanes = std::array<std::vector<Busy>, kStreamCount + 1>;

std::string LaneName(std::size_t lane) {
  return lane == 0 ? "host" : std::string(StreamRoleName(static_cast<StreamRole>(lane - 1)));
}

Lanes BusyLanes(const Timeline& timeline, const Schedule& schedule) {
  Lanes lanes;
  for (const HostWork& work : timeline.host) {
    if (work.start != work.end) {
      lanes[0].push_back({work.task, work.waited ? "host waits" : "host", work.start, work.end});
    }
  }
  for (const Span& span : timeline.spans) {
    if (span.start != span.end) {
      lanes[span.stream + 1U].push_back(
          {span.task, TaskKindName(schedule.task(span.task).kind), span.start, span.end});
    }
  }
  return lanes;
}

/// One bar for what begins and ends within `width`.
std::vector<Bar> MergeWithin(Duration width, const std::vector<Busy>& lane) {
  std::vector<Bar> bars;
  for (const Busy& busy : lane) {
    if (bars.empty() || busy.end - bars.back().start > width) {
      bars.push_back({busy, busy.start, busy.end, 1});
      continue;
    }
    Bar& bar = bars.back();
    bar.end = std::max(bar.end, busy.end);
    ++bar.tasks;
    if (busy.end - busy.start > bar.longest.end - bar.longest.start) {
      bar.longest = busy;
    }
  }
  return bars;
}

/// Every task, if they are few enough to draw; else bars of a width at which they are.
std::vector<std::vector<Bar>> MergeLanes(const Lanes& lanes) {
  SimTime end;
  for (const std::vector<Busy>& lane : lanes) {
    end = lane.empty() ? end : std::max(end, lane.back().end);
  }
  constexpr std::int64_t kFinest = 8192;  // bars beside each other
  const Duration finest = Duration::FromNs((end - SimTime()).ns() / kFinest + 1);
  for (Duration width;; width = std::max(finest, width * 2)) {
    std::vector<std::vector<Bar>> merged;
    std::size_t count = 0;
    for (const std::vector<Busy>& lane : lanes) {
      merged.push_back(MergeWithin(width, lane));
      count += merged.back().size();
    }
    if (count <= kMostBars) {
      return merged;
    }
  }
}

Json PrintStreams(const Timeline& timeline, const Schedule& schedule, const Graph& graph) {
  Json streams = Json::object();
  const std::vector<std::vector<Bar>> lanes = MergeLanes(BusyLanes(timeline, schedule));
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    for (const Bar& bar : lanes[lane]) {
      Json& stream = streams[LaneName(lane)];
      stream["start_ns"].push_back(bar.start.ns());
      stream["end_ns"].push_back(bar.end.ns());
      stream["kind"].push_back(bar.longest.kind);
      stream["label"].push_back(TaskLabel(schedule, graph, bar.longest.task));
      stream["tasks"].push_back(bar.tasks);
    }
  }
  return streams;
}

Json PrintExposed(const Timeline& timeline, const Schedule& schedule) {
  Json exposed = Json::object();
  const auto names = CollectiveKindNames();
  const auto times = ExposedByKind(FindExposure(timeline, schedule), schedule);
  for (std::size_t kind = 0; kind < times.size(); ++kind) {
    exposed[std::string(names[kind])] = times[kind].ns();
  }
  return exposed;
}

/// Live bytes by class, while the tasks' allocator calls are followed in host order.
class LiveClasses {
 public:
  explicit LiveClasses(const Schedule& schedule)
      : schedule_(schedule),
        bytes_(BufferClassNames().size()) {
    for (const Buffer& buffer : schedule.buffers()) {
      // Carried ones are those of the step before, until they are freed.
      if ((buffer.resident && !buffer.on_host()) || buffer.carried) {
        Of(buffer) += buffer.bytes;
      }
    }
  }

  void FollowTo(TaskId task) {
    for (; next_ <= task.index(); ++next_) {
      for (const MemoryStep& step : schedule_.memory(TaskId(next_))) {
        const Buffer& buffer = schedule_.buffer(step.buffer);
        Of(buffer) += step.frees ? Bytes(0) - buffer.bytes : buffer.bytes;
      }
    }
  }

  const std::vector<Bytes>& bytes() const { return bytes_; }

 private:
  Bytes& Of(const Buffer& buffer) { return bytes_[static_cast<std::size_t>(buffer.buffer_class)]; }

  const Schedule& schedule_;
  std::vector<Bytes> bytes_;
  std::size_t next_ = 0;
};

/// The samples that show every peak, in order: of each stretch those with most allocated, reserved
/// and alive; the first and the last; all if they are few.
std::vector<bool> ShownSamples(std::span<const MemorySample> samples) {
  const std::size_t stretch =
      samples.size() <= kMostSamples ? 1 : samples.size() * 3 / kMostSamples;
  std::vector<bool> shown(samples.size(), stretch == 1);
  for (std::size_t begin = 0; begin < samples.size() && stretch > 1; begin += stretch) {
    const auto part = samples.subspan(begin, std::min(stretch, samples.size() - begin));
    for (const auto bytes :
         {&MemorySample::allocated, &MemorySample::reserved, &MemorySample::live}) {
      const auto most = std::ranges::max_element(part, {}, bytes);
      shown[begin + static_cast<std::size_t>(most - part.begin())] = true;
    }
  }
  if (!samples.empty()) {
    shown.front() = shown.back() = true;
  }
  return shown;
}

Json PrintMemory(const Timeline& timeline, const Schedule& schedule) {
  Json memory = {{"time_ns", Json::array()},
                 {"allocated_bytes", Json::array()},
                 {"reserved_bytes", Json::array()}};
  LiveClasses live(schedule);
  std::vector<std::vector<std::int64_t>> columns(BufferClassNames().size());
  const std::vector<bool> shown = ShownSamples(timeline.memory);
  for (std::size_t s = 0; s < shown.size(); ++s) {
    const MemorySample& sample = timeline.memory[s];
    if (timeline.stop && sample.task == timeline.stop->task) {
      break;  // what of it was done nobody knows
    }
    live.FollowTo(sample.task);
    if (!shown[s]) {
      continue;
    }
    memory["time_ns"].push_back(sample.time.ns());
    memory["allocated_bytes"].push_back(sample.allocated.count());
    memory["reserved_bytes"].push_back(sample.reserved.count());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      columns[i].push_back(live.bytes()[i].count());
    }
  }
  memory["live_bytes"] = Json::object();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (std::any_of(columns[i].begin(), columns[i].end(), [](auto bytes) { return bytes != 0; })) {
      memory["live_bytes"][std::string(BufferClassNames()[i])] = std::move(columns[i]);
    }
  }
  return memory;
}

}  // namespace

Json PrintStepDetail(const Timeline& timeline, const Schedule& schedule, const Graph& graph) {
  return {{"step_time_ns", timeline.step_time.ns()},
          {"stop", timeline.stop ? Json(timeline.stop->what) : Json(nullptr)},
          {"streams", PrintStreams(timeline, schedule, graph)},
          {"exposed_ns", PrintExposed(timeline, schedule)},
          {"memory", PrintMemory(timeline, schedule)}};
}

}  // namespace dcsim
