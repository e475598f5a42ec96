#include "tools/views/timeline_trace.h"

#include "model/ir/document.h"
#include "model/ir/task_label.h"

namespace dcsim {
namespace {

constexpr int kHostThread = static_cast<int>(kStreamCount);

/// Collects the events of one trace, one a line.
class TraceWriter {
 public:
  void Add(const Json& event) {
    text_ += text_.empty() ? "" : ",\n";
    text_ += event.dump();
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

double Us(SimTime time) {
  return static_cast<double>(time.ns()) / 1000;
}

void AddNames(TraceWriter& writer, std::size_t rank) {
  writer.Add({{"ph", "M"},
              {"name", "process_name"},
              {"pid", rank},
              {"args", {{"name", "rank " + std::to_string(rank)}}}});
  const auto thread = [&writer, rank](int id, std::string_view name) {
    writer.Add({{"ph", "M"},
                {"name", "thread_name"},
                {"pid", rank},
                {"tid", id},
                {"args", {{"name", name}}}});
    writer.Add({{"ph", "M"},
                {"name", "thread_sort_index"},
                {"pid", rank},
                {"tid", id},
                {"args", {{"sort_index", (id + 1) % (kHostThread + 1)}}}});
  };
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    thread(static_cast<int>(s), StreamRoleName(static_cast<StreamRole>(s)));
  }
  thread(kHostThread, "host");
}

Json SpanEvent(const std::string& name,
               std::string_view category,
               int thread,
               SimTime start,
               SimTime end,
               std::uint16_t rank) {
  return {{"ph", "X"},
          {"name", name},
          {"cat", category},
          {"pid", rank},
          {"tid", thread},
          {"ts", Us(start)},
          {"dur", Us(SimTime() + (end - start))}};
}

void AddSpans(TraceWriter& writer,
              const Timeline& timeline,
              const Schedule& schedule,
              const Graph& graph) {
  for (const Span& span : timeline.spans) {
    if (span.start == span.end) {
      continue;
    }
    Json event = SpanEvent(TaskLabel(schedule, graph, span.task),
                           TaskKindName(schedule.task(span.task).kind), span.stream, span.start,
                           span.end, span.rank);
    Json details = {{"task", span.task.index()}, {"stall", StallReasonName(span.stall)}};
    if (!span.blocker.is_none()) {
      details["after_task"] = span.blocker.index();
    }
    if (const Collective* collective = schedule.FindCollective(span.task)) {
      details["payload_bytes"] = collective->payload().count();
      details["calls"] = collective->launches();
    }
    event["args"] = std::move(details);
    writer.Add(event);
  }
  for (const HostWork& work : timeline.host) {
    if (work.start != work.end) {
      writer.Add(SpanEvent(TaskLabel(schedule, graph, work.task),
                           TaskKindName(schedule.task(work.task).kind), kHostThread, work.start,
                           work.end, work.rank));
    }
  }
}

/// The spans of a timeline by task; null for tasks without a length of their own.
std::vector<const Span*> VisibleSpans(const Timeline& timeline, const Schedule& schedule) {
  std::vector<const Span*> of_task(schedule.task_count());
  for (const Span& span : timeline.spans) {
    of_task[span.task.index()] = span.start == span.end ? nullptr : &span;
  }
  return of_task;
}

void AddArrow(TraceWriter& writer, const Span& from, const Span& to, std::size_t id) {
  const auto end = [id](const Span& span, std::string_view phase, SimTime time) -> Json {
    return {{"ph", phase},      {"name", "dependency"}, {"cat", "dependency"}, {"id", id},
            {"pid", span.rank}, {"tid", span.stream},   {"ts", Us(time)},      {"bp", "e"}};
  };
  writer.Add(end(from, "s", from.start));
  writer.Add(end(to, "f", to.start));
}

/// One arrow for each wait of a stream for a collective, to the stream's next task with a length.
///
///   id   of the next arrow
void AddArrows(TraceWriter& writer,
               const Timeline& timeline,
               const Schedule& schedule,
               std::size_t& id) {
  const auto of_task = VisibleSpans(timeline, schedule);
  std::vector<std::vector<const Span*>> waiting(kStreamCount);  // by stream: where arrows start
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    const Task& task = schedule.task(TaskId(i));
    if (task.on_host()) {
      continue;
    }
    auto& sources = waiting[task.stream];
    for (const TaskId waited : schedule.waits(TaskId(i))) {
      const Span* from = of_task[waited.index()];
      if (from != nullptr && schedule.FindCollective(waited) != nullptr) {
        sources.push_back(from);
      }
    }
    if (const Span* to = of_task[i]) {
      for (const Span* from : sources) {
        AddArrow(writer, *from, *to, id++);
      }
      sources.clear();
    }
  }
}

void AddCounters(TraceWriter& writer, const Timeline& timeline) {
  for (const MemorySample& sample : timeline.memory) {
    writer.Add({{"ph", "C"},
                {"name", "memory (bytes)"},
                {"pid", sample.rank},
                {"ts", Us(sample.time)},
                {"args",
                 {{"live", sample.live.count()},
                  {"allocated", sample.allocated.count()},
                  {"active", sample.active.count()},
                  {"reserved", sample.reserved.count()}}}});
  }
}

/// Where a step stopped, over all lanes.
void AddStop(TraceWriter& writer, const Timeline& timeline) {
  if (timeline.stop) {
    writer.Add({{"ph", "i"},
                {"name", timeline.stop->what},
                {"cat", "stop"},
                {"s", "g"},
                {"pid", 0},
                {"tid", kHostThread},
                {"ts", Us(timeline.stop->time)}});
  }
}

}  // namespace

std::string PrintTimelineTrace(std::span<const Timeline> ranks,
                               const Schedule& schedule,
                               const Graph& graph,
                               const Json& versions) {
  TraceWriter writer;
  std::size_t arrows = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    AddNames(writer, rank);
    AddSpans(writer, ranks[rank], schedule, graph);
    AddArrows(writer, ranks[rank], schedule, arrows);
    AddCounters(writer, ranks[rank]);
    AddStop(writer, ranks[rank]);
  }
  Json header = {{"format", "dc-timeline/1"},
                 {"versions", versions},
                 {"origin", OriginName(ranks.front().origin)},
                 {"workload", graph.name},
                 {"backend", BackendNames()[static_cast<std::size_t>(graph.backend())]},
                 {"step_time_ns", ranks.front().step_time.ns()},
                 {"displayTimeUnit", "ms"}};
  if (const auto& stop = ranks.front().stop) {
    header["stop"] = stop->what;
  }
  std::string text = header.dump();
  text.pop_back();
  return text + ",\"traceEvents\":[\n" + writer.text() + "\n]}\n";
}

}  // namespace dcsim
