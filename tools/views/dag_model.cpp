#include "tools/views/dag_model.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "sim/analysis/critical_path.h"
#include "tools/views/dag_fold.h"

namespace dcsim {
namespace {

/// Everything that grows while the tasks are sorted into nodes.
struct FoldState {
  const Schedule& schedule;
  std::vector<std::optional<TaskPlace>> places;
  DagModel model;
  std::map<std::tuple<std::string, std::string, std::string, int>, std::size_t> node_ids;
  std::map<std::pair<std::string, std::string>, std::size_t> cluster_ids;
  std::vector<std::size_t> node_of;  // by task; kNoNode: not drawn

  static constexpr std::size_t kNoNode = SIZE_MAX;
};

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

void SortTasks(FoldState& state) {
  state.node_of.assign(state.schedule.task_count(), FoldState::kNoNode);
  for (std::size_t i = 0; i < state.places.size(); ++i) {
    if (state.places[i]) {
      state.node_of[i] = NodeOf(state, *state.places[i]);
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
      const std::size_t next = NextPlaced(state.schedule, state.places, i);
      const std::size_t to = next < state.node_of.size() ? state.node_of[next] : FoldState::kNoNode;
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

}  // namespace

DagModel FoldSchedule(const Schedule& schedule, const Graph& graph, const Timeline& timeline) {
  FoldState state{schedule, PlaceTasks(schedule, graph, timeline.stop), {}, {}, {}, {}};
  state.model.title = DagTitle(schedule, graph, timeline);
  SortTasks(state);
  AddTimes(state, timeline);
  AddEdges(state);
  return FoldAlikeLayers(std::move(state.model));
}

}  // namespace dcsim
