#include "tools/views/dag_model.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>

#include "model/base/text.h"
#include "sim/analysis/critical_path.h"
#include "tools/views/dag_fold.h"

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

/// Where a task is drawn: phase (a graph, or the optimizer), layer, and node within it.
struct TaskPlace {
  std::string phase;
  std::string layer;
  std::string label;
  DagNodeKind kind = DagNodeKind::kCompute;
};

/// Everything that grows while the tasks are sorted into nodes.
struct FoldState {
  const Schedule& schedule;
  const Graph& graph;
  DagModel model;
  std::map<std::tuple<std::string, std::string, std::string, int>, std::size_t> node_ids;
  std::map<std::pair<std::string, std::string>, std::size_t> cluster_ids;
  std::vector<std::size_t> node_of;  // by task; kNoNode: not drawn
  std::string phase;                 // of the op before, or of the next one for gathers
  std::string module;                // of the op before
  std::size_t flushes = 0;

  static constexpr std::size_t kNoNode = SIZE_MAX;
};

std::string PhaseOf(const Graph& graph, GraphId id) {
  const Subgraph& subgraph = graph.graphs[id.index()];
  const std::string name = subgraph.direction == Direction::kForward ? "forward" : "backward";
  return graph.graphs.size() <= 2 ? name : name + " (graph " + std::to_string(id.index()) + ")";
}

/// Ops that belong to no module are drawn with the op before them.
TaskPlace OpPlace(FoldState& state, OpId id) {
  const Op& op = state.graph.op(id);
  const std::string& path = state.graph.modules[op.module];
  state.module = path.empty() ? state.module : path;
  const ModulePlace module = PlaceOf(state.module);
  const std::string fallback = module.layer.empty() ? "outside modules" : "layer's own ops";
  return {PhaseOf(state.graph, op.graph), module.layer,
          module.rest.empty() ? fallback : module.rest, DagNodeKind::kCompute};
}

TaskPlace ParamPlace(const FoldState& state,
                     ParamId id,
                     DagNodeKind kind,
                     const std::string& verb) {
  const std::string& name = state.graph.param(id).name;
  const ModulePlace module = PlaceOf(ModuleOfParam(name));
  const std::string own = module.layer.empty() ? name : name.substr(module.layer.size() + 1);
  return {state.phase, module.layer, verb + " " + own, kind};
}

TaskPlace CollectivePlace(FoldState& state, const Collective& collective, TaskKind kind) {
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
TaskPlace MovedPlace(const FoldState& state, TaskId id) {
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
std::optional<TaskPlace> OtherPlace(FoldState& state, TaskId id) {
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

std::size_t ClusterOf(FoldState& state, const std::string& phase, const std::string& layer) {
  const auto [entry, added] =
      state.cluster_ids.emplace(std::pair(phase, layer), state.model.clusters.size());
  if (added) {
    state.model.clusters.push_back({layer.empty() ? phase : layer, DagCluster::kNone});
    const std::size_t own = entry->second;
    if (!layer.empty()) {
      state.model.clusters[own].parent = ClusterOf(state, phase, "");
    }
    return own;
  }
  return entry->second;
}

std::size_t NodeOf(FoldState& state, const TaskPlace& place) {
  const auto key = std::tuple(place.phase, place.layer, place.label, static_cast<int>(place.kind));
  const auto [entry, added] = state.node_ids.emplace(key, state.model.nodes.size());
  if (added) {
    DagNode node;
    node.kind = place.kind;
    node.label = place.label;
    node.cluster = ClusterOf(state, place.phase, place.layer);
    state.model.nodes.push_back(node);
  }
  return entry->second;
}

/// The graph that a gather is for: that of the next op in issue order.
std::string NextPhase(const FoldState& state, std::size_t task) {
  for (std::size_t i = task; i < state.schedule.task_count(); ++i) {
    if (state.schedule.tasks()[i].kind == TaskKind::kCompute) {
      const Work& work = state.schedule.work(state.schedule.tasks()[i].work);
      return PhaseOf(state.graph, state.graph.op(OpId(work.subject)).graph);
    }
  }
  return state.phase;
}

/// Of a step that stopped, what was issued of the micro-step in which it did, the task that could
/// not be included.
void SortTasks(FoldState& state, const std::optional<TimelineStop>& stop) {
  int last_micro_step = state.schedule.options().gradient_accumulation_steps - 1;
  std::size_t count = state.schedule.task_count();
  if (stop) {
    count = stop->task.is_none() ? 0 : stop->task.index() + 1;
    last_micro_step = count == 0 ? 0 : state.schedule.task(stop->task).micro_step;
  }
  state.node_of.assign(state.schedule.task_count(), FoldState::kNoNode);
  for (std::size_t i = 0; i < count; ++i) {
    const TaskId id(i);
    const Task& task = state.schedule.task(id);
    if (task.micro_step != last_micro_step) {
      continue;
    }
    std::optional<TaskPlace> place;
    if (task.kind == TaskKind::kCompute) {
      place = OpPlace(state, OpId(state.schedule.work(task.work).subject));
      state.phase = place->phase;
    } else {
      const std::string before = state.phase;
      state.phase = task.kind == TaskKind::kAllGather ? NextPhase(state, i) : before;
      place = OtherPlace(state, id);
      state.phase = before;
    }
    if (place && !task.on_host()) {
      state.node_of[i] = NodeOf(state, *place);
      ++state.model.nodes[state.node_of[i]].tasks;
    }
  }
}

void AddTimes(FoldState& state, const Timeline& timeline) {
  for (const Span& span : timeline.spans) {
    const std::size_t node = state.node_of[span.task.index()];
    if (node != FoldState::kNoNode) {
      state.model.nodes[node].busy += span.end - span.start;
    }
  }
  if (timeline.stop) {
    return;  // nothing that ended late, but something that did not begin
  }
  for (const CriticalPiece& piece : FindStepCriticalPath(timeline, state.schedule)) {
    const std::size_t node = state.node_of[piece.task.index()];
    if (node != FoldState::kNoNode && !piece.on_host) {
      state.model.nodes[node].critical += piece.end - piece.start;
    }
  }
}

void AddEdge(FoldState& state, std::size_t from, std::size_t to, std::set<DagEdge>& edges) {
  if (from == FoldState::kNoNode || to == FoldState::kNoNode || from == to) {
    return;
  }
  const bool critical =
      state.model.nodes[from].critical > Duration() && state.model.nodes[to].critical > Duration();
  edges.insert({from, to, critical});
}

/// The drawn task that a wait stands before: the next one on the same stream.
std::size_t NextDrawn(const FoldState& state, std::size_t task) {
  const std::uint8_t stream = state.schedule.tasks()[task].stream;
  for (std::size_t i = task; i < state.schedule.task_count(); ++i) {
    if (state.schedule.tasks()[i].stream == stream && state.node_of[i] != FoldState::kNoNode) {
      return state.node_of[i];
    }
  }
  return FoldState::kNoNode;
}

/// Compute nodes in the order of their first tasks; other dependencies as the events say, where
/// they cross streams.
void AddEdges(FoldState& state) {
  std::set<DagEdge> edges;
  std::size_t previous = FoldState::kNoNode;
  std::set<std::size_t> visited;
  for (std::size_t i = 0; i < state.schedule.task_count(); ++i) {
    const std::size_t node = state.node_of[i];
    const bool chained =
        node != FoldState::kNoNode && (state.model.nodes[node].kind == DagNodeKind::kCompute ||
                                       state.model.nodes[node].kind == DagNodeKind::kOptimizer);
    if (chained && visited.insert(node).second) {
      AddEdge(state, previous, node, edges);
      previous = node;
    }
    for (const TaskId waited : state.schedule.waits(TaskId(i))) {
      const std::size_t from = state.node_of[waited.index()];
      if (from == FoldState::kNoNode || state.schedule.tasks()[i].on_host()) {
        continue;
      }
      const std::size_t to = NextDrawn(state, i);
      const bool issue_point = to != FoldState::kNoNode &&
                               state.model.nodes[to].kind == DagNodeKind::kGather &&
                               state.model.nodes[from].kind == DagNodeKind::kCompute;
      if (!issue_point) {  // a gather waits for the point of its issue: too many to draw
        AddEdge(state, from, to, edges);
      }
    }
  }
  state.model.edges.assign(edges.begin(), edges.end());
}

std::string TitleOf(const Schedule& schedule, const Graph& graph, const Timeline& timeline) {
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

}  // namespace

DagModel FoldSchedule(const Schedule& schedule, const Graph& graph, const Timeline& timeline) {
  FoldState state{schedule, graph, {}, {}, {}, {}, {}, {}, 0};
  state.model.title = TitleOf(schedule, graph, timeline);
  SortTasks(state, timeline.stop);
  AddTimes(state, timeline);
  AddEdges(state);
  return FoldAlikeLayers(std::move(state.model));
}

}  // namespace dcsim
