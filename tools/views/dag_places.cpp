#include "tools/views/dag_places.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "model/base/text.h"

namespace dcsim {
namespace {

/// A module path cut behind its first number: layer "model.layers.3", rest "self_attn.q_proj".
/// Paths without a number belong to no layer.
struct ModulePlace {
  std::string layer;
  std::string rest;
};

ModulePlace PlaceOf(const std::string& path) {
  std::size_t start = 0;
  while (start < path.size()) {
    const std::size_t end = std::min(path.find('.', start), path.size());
    const bool number = std::all_of(path.begin() + static_cast<std::ptrdiff_t>(start),
                                    path.begin() + static_cast<std::ptrdiff_t>(end),
                                    [](unsigned char c) { return std::isdigit(c) != 0; });
    if (number && end > start) {
      return {path.substr(0, end), end < path.size() ? path.substr(end + 1) : ""};
    }
    start = end + 1;
  }
  return {"", path};
}

/// "a.b.weight" -> "a.b".
std::string ModuleOfParam(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

/// What sorting the tasks in issue order goes along with.
struct Sorting {
  const Schedule& schedule;
  const Graph& graph;
  std::string phase;   // of the op before, or of the next one for gathers
  std::string module;  // of the op before
  std::size_t flushes = 0;
};

std::string PhaseOf(const Graph& graph, GraphId id) {
  const Subgraph& subgraph = graph.graphs[id.index()];
  const std::string name = subgraph.direction == Direction::kForward ? "forward" : "backward";
  return graph.graphs.size() <= 2 ? name : name + " (graph " + std::to_string(id.index()) + ")";
}

/// Ops that belong to no module are drawn with the op before them.
TaskPlace OpPlace(Sorting& state, OpId id) {
  const Op& op = state.graph.op(id);
  const std::string& path = state.graph.modules[op.module];
  state.module = path.empty() ? state.module : path;
  const ModulePlace module = PlaceOf(state.module);
  const std::string fallback = module.layer.empty() ? "outside modules" : "layer's own ops";
  return {PhaseOf(state.graph, op.graph), module.layer,
          module.rest.empty() ? fallback : module.rest, DagNodeKind::kCompute};
}

TaskPlace ParamPlace(const Sorting& state, ParamId id, DagNodeKind kind, const std::string& verb) {
  const std::string& name = state.graph.param(id).name;
  const ModulePlace module = PlaceOf(ModuleOfParam(name));
  const std::string own = module.layer.empty() ? name : name.substr(module.layer.size() + 1);
  return {state.phase, module.layer, verb + " " + own, kind};
}

TaskPlace CollectivePlace(Sorting& state, const Collective& collective, TaskKind kind) {
  const CollectiveCall& last = collective.calls.back();
  if (kind == TaskKind::kAllGather && collective.calls.size() == 1) {
    return ParamPlace(state, last.param, DagNodeKind::kGather, "gather");
  }
  const std::string layer =
      last.param.is_none() ? "" : PlaceOf(ModuleOfParam(state.graph.param(last.param).name)).layer;
  const std::string count = std::to_string(collective.calls.size());
  if (kind == TaskKind::kAllGather) {
    return {state.phase, layer, "gather " + count + " parameters", DagNodeKind::kGather};
  }
  const std::string number = std::to_string(state.flushes);
  return {state.phase, layer, "flush " + number + ": reduce " + count + " gradients",
          DagNodeKind::kReduce};
}

/// Where a copy between host and device is drawn, by its buffer on the device.
TaskPlace MovedPlace(const Sorting& state, TaskId id) {
  const std::string kind(TaskKindName(state.schedule.task(id).kind));
  for (const BufferUse& use : state.schedule.uses(id)) {
    const Buffer& buffer = state.schedule.buffer(use.buffer);
    switch (buffer.buffer_class) {
      case BufferClass::kParameter:
        return ParamPlace(state, ParamId(buffer.subject), DagNodeKind::kCopy, kind + " shard of");
      case BufferClass::kActivation:
        return {state.phase, "", kind + " activations", DagNodeKind::kCopy};
      case BufferClass::kTemporary:
        return {"optimizer", "", kind + " shards", DagNodeKind::kCopy};
      default:
        break;
    }
  }
  return {"optimizer states", "", kind, DagNodeKind::kCopy};
}

/// Where a task that is no recorded op is drawn, or nothing for those that only order others.
std::optional<TaskPlace> OtherPlace(Sorting& state, TaskId id) {
  const Task& task = state.schedule.task(id);
  const Work& work = state.schedule.work(task.work);
  switch (task.kind) {
    case TaskKind::kAllGather:
      return CollectivePlace(state, state.schedule.collective(CollectiveId(work.subject)),
                             task.kind);
    case TaskKind::kPreDivide:
      ++state.flushes;
      [[fallthrough]];
    case TaskKind::kReduce:
    case TaskKind::kFlatten:
    case TaskKind::kUnflatten:
    case TaskKind::kCastBucket:
    case TaskKind::kStoreReduced:
    case TaskKind::kGatherCopyIn:
    case TaskKind::kGatherCopyOut:
    case TaskKind::kReduceCopyIn:
      return CollectivePlace(state, state.schedule.collective(CollectiveId(work.subject)),
                             task.kind);
    case TaskKind::kAccumulate:
    case TaskKind::kMakeContiguous:
    case TaskKind::kReduceGradCopy:
      return ParamPlace(state, ParamId(work.subject), DagNodeKind::kCopy, "gradient of");
    case TaskKind::kCastShard:
      return ParamPlace(state, ParamId(work.subject), DagNodeKind::kCopy, "shard of");
    case TaskKind::kOffload:
    case TaskKind::kReload:
      return MovedPlace(state, id);
    case TaskKind::kSetTangents:
    case TaskKind::kClearGradients:
      return std::nullopt;
    case TaskKind::kReduceNorm:
    case TaskKind::kBarrier:
    case TaskKind::kGatherUpdated:
      return TaskPlace{
          "optimizer", "", std::string(TaskKindName(task.kind)),
          task.kind == TaskKind::kGatherUpdated ? DagNodeKind::kGather : DagNodeKind::kReduce};
    case TaskKind::kGradientNorm:
    case TaskKind::kCastGradients:
    case TaskKind::kClipGradients:
    case TaskKind::kOptimizerStep:
    case TaskKind::kStoreParams:
      return TaskPlace{"optimizer", "", std::string(TaskKindName(task.kind)),
                       DagNodeKind::kOptimizer};
    default:
      return std::nullopt;
  }
}

/// The graph that a gather is for: that of the next op in issue order.
std::string NextPhase(const Sorting& state, std::size_t task) {
  for (std::size_t i = task; i < state.schedule.task_count(); ++i) {
    if (state.schedule.tasks()[i].kind == TaskKind::kCompute) {
      const Work& work = state.schedule.work(state.schedule.tasks()[i].work);
      return PhaseOf(state.graph, state.graph.op(OpId(work.subject)).graph);
    }
  }
  return state.phase;
}

/// The place of one task, the next in issue order.
std::optional<TaskPlace> PlaceOfTask(Sorting& state, TaskId id) {
  const Task& task = state.schedule.task(id);
  if (task.kind == TaskKind::kCompute) {
    TaskPlace place = OpPlace(state, OpId(state.schedule.work(task.work).subject));
    state.phase = place.phase;
    return place;
  }
  const std::string before = state.phase;
  state.phase = task.kind == TaskKind::kAllGather ? NextPhase(state, id.index()) : before;
  auto place = OtherPlace(state, id);
  state.phase = before;
  return place;
}

}  // namespace

std::vector<std::optional<TaskPlace>> PlaceTasks(const Schedule& schedule,
                                                 const Graph& graph,
                                                 const std::optional<TimelineStop>& stop) {
  int last_micro_step = schedule.options().gradient_accumulation_steps - 1;
  std::size_t count = schedule.task_count();
  if (stop) {
    count = stop->task.is_none() ? 0 : stop->task.index() + 1;
    last_micro_step = count == 0 ? 0 : schedule.task(stop->task).micro_step;
  }
  Sorting state{schedule, graph, {}, {}, 0};
  std::vector<std::optional<TaskPlace>> places(schedule.task_count());
  for (std::size_t i = 0; i < count; ++i) {
    const TaskId id(i);
    if (schedule.task(id).micro_step == last_micro_step) {
      const auto place = PlaceOfTask(state, id);
      if (!schedule.task(id).on_host()) {
        places[i] = place;
      }
    }
  }
  return places;
}

std::size_t NextPlaced(const Schedule& schedule,
                       const std::vector<std::optional<TaskPlace>>& places,
                       std::size_t task) {
  const std::uint8_t stream = schedule.tasks()[task].stream;
  std::size_t i = task;
  while (i < places.size() && !(schedule.tasks()[i].stream == stream && places[i])) {
    ++i;
  }
  return i;
}

std::vector<DagEdge> MovedEdges(const std::vector<DagEdge>& edges,
                                const std::vector<std::size_t>& become) {
  std::map<std::pair<std::size_t, std::size_t>, bool> moved;
  for (const DagEdge& edge : edges) {
    const std::size_t from = become[edge.from];
    const std::size_t to = become[edge.to];
    if (from != to) {
      bool& critical = moved[{from, to}];
      critical = critical || edge.critical;
    }
  }
  std::vector<DagEdge> between;
  for (const auto& [ends, critical] : moved) {
    between.push_back({ends.first, ends.second, critical});
  }
  return between;
}

std::string DagTitle(const Schedule& schedule, const Graph& graph, const Timeline& timeline) {
  const int micro_steps = schedule.options().gradient_accumulation_steps;
  const std::string which = micro_steps == 1 || timeline.stop
                                ? ""
                                : ", last of " + std::to_string(micro_steps) + " micro-steps";
  const std::string time = FormatDuration(timeline.step_time);
  const std::string backend(BackendNames()[static_cast<std::size_t>(graph.backend())]);
  return graph.name + ", ZeRO-" + std::to_string(schedule.options().stage) + ", " + backend + ", " +
         std::to_string(schedule.ranks()) + " ranks" + which + ": " +
         (timeline.stop ? timeline.stop->what + " after " + time : "step " + time) + " (" +
         std::string(OriginName(timeline.origin)) + ")";
}

}  // namespace dcsim
