#include "tools/views/step_detail.h"

#include <algorithm>
#include <string>
#include <vector>

#include "model/ir/task_label.h"
#include "sim/analysis/exposure.h"

namespace dcsim {
namespace {

Json PrintStreams(const Timeline& timeline, const Schedule& schedule, const Graph& graph) {
  Json streams = Json::object();
  for (const Span& span : timeline.spans) {
    if (span.start == span.end) {
      continue;
    }
    Json& stream = streams[std::string(StreamRoleName(static_cast<StreamRole>(span.stream)))];
    stream["start_ns"].push_back(span.start.ns());
    stream["end_ns"].push_back(span.end.ns());
    stream["kind"].push_back(TaskKindName(schedule.task(span.task).kind));
    stream["label"].push_back(TaskLabel(schedule, graph, span.task));
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

Json PrintMemory(const Timeline& timeline, const Schedule& schedule) {
  Json memory = {{"time_ns", Json::array()},
                 {"allocated_bytes", Json::array()},
                 {"reserved_bytes", Json::array()}};
  LiveClasses live(schedule);
  std::vector<std::vector<std::int64_t>> columns(BufferClassNames().size());
  for (const MemorySample& sample : timeline.memory) {
    if (timeline.stop && sample.task == timeline.stop->task) {
      break;  // what of it was done nobody knows
    }
    live.FollowTo(sample.task);
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
