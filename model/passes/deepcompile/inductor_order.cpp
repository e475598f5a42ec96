#include "model/passes/deepcompile/inductor_order.h"

#include <algorithm>

#include "model/graph/step_facts.h"
#include "model/ir/recorded_order.h"

namespace dcsim {
namespace {

bool ReadsIntegers(const Graph& graph, const KernelLaunch& launch) {
  return std::any_of(launch.reads.begin(), launch.reads.end(), [&](const ValueBytes& read) {
    const DType dtype = graph.value(read.value).dtype;
    return dtype == DType::kInt64 || dtype == DType::kInt32;
  });
}

/// The position behind the last op of graph `g` that reads a parameter.
std::size_t BehindParams(const Graph& graph, const std::vector<UseSpan>& uses) {
  std::size_t behind = 0;
  for (const Param& param : graph.params) {
    const UseSpan& span = uses[graph.storage_of(param.value).index()];
    behind = span.used ? std::max(behind, span.last + 1) : behind;
  }
  return behind;
}

/// At one position: what ends comes first, then shards, gathers, waits.
int RankOf(GraphEventKind kind) {
  switch (kind) {
    case GraphEventKind::kRelease:
    case GraphEventKind::kReduce:
      return 0;
    case GraphEventKind::kReloadShard:
      return 1;
    case GraphEventKind::kGather:
      return 2;
    default:
      return 3;
  }
}

void SortEvents(std::vector<GraphEvent>& events) {
  std::stable_sort(events.begin(), events.end(), [](const GraphEvent& a, const GraphEvent& b) {
    return a.position != b.position ? a.position < b.position : RankOf(a.kind) < RankOf(b.kind);
  });
}

/// Places the events of one graph.
class EventPlacer {
 public:
  EventPlacer(const Graph& graph, std::size_t g, const GraphPlan& decided)
      : graph_(graph),
        subgraph_(graph.graphs[g]),
        decided_(decided) {
    lowered_.plan.order = RecordedOrder(subgraph_);
    uses_ = FindUses(graph, lowered_.plan.order);
    made_.resize(graph.values.size());
    for (std::size_t i = 0; i < subgraph_.op_count; ++i) {
      for (const ValueId output : graph.ops[subgraph_.first_op + i].outputs) {
        if (!output.is_none()) {
          made_[output.index()] = i + 1;
        }
      }
    }
  }

  /// `sink`: single gathers stand at their waits; `late`: prefetches come behind the loss.
  LoweredGraph Place(bool sink, bool late) {
    sink_ = sink;
    late_ = late;
    for (const GraphEvent& event : decided_.events) {
      PlaceEvent(event);
    }
    SortEvents(lowered_.plan.events);
    for (StateMove move : decided_.state_moves) {
      move.position = PlaceOf(move.position);
      lowered_.plan.state_moves.push_back(std::move(move));
    }
    std::stable_sort(
        lowered_.plan.state_moves.begin(), lowered_.plan.state_moves.end(),
        [](const StateMove& a, const StateMove& b) { return a.position < b.position; });
    return std::move(lowered_);
  }

 private:
  /// Of the op in front of which something was decided to stand; behind all of them as it is.
  std::size_t PlaceOf(std::size_t position) const {
    return position < decided_.order.size() ? decided_.order[position].index() - subgraph_.first_op
                                            : position;
  }

  const UseSpan& UsesOf(ParamId id) const {
    return uses_[graph_.storage_of(graph_.param(id).value).index()];
  }

  void Add(GraphEventKind kind, std::size_t position, std::vector<ParamId> params) {
    lowered_.plan.events.push_back({kind, position, std::move(params)});
  }

  void PlaceEvent(const GraphEvent& event) {
    switch (event.kind) {
      case GraphEventKind::kGather:
      case GraphEventKind::kReloadShard:
        return PlaceGather(event);
      case GraphEventKind::kWait:
        return Add(event.kind, UsesOf(event.params.front()).first, event.params);
      case GraphEventKind::kRelease:
        return Add(event.kind, UsesOf(event.params.front()).last + 1, event.params);
      default:
        return Add(event.kind, PlaceOfReduction(event.params.front()), event.params);
    }
  }

  std::size_t PlaceOfReduction(ParamId param) const {
    for (const GraphOutput& output : subgraph_.outputs) {
      if (output.kind == GraphOutputKind::kGradient && output.param == param) {
        return made_[output.value.index()];
      }
    }
    return 0;
  }

  void PlaceGather(const GraphEvent& event) {
    const bool gathers = event.kind == GraphEventKind::kGather;
    const bool late = gathers && late_ && event.position > 0;
    if (!late && !(gathers && sink_)) {
      std::size_t position = PlaceOf(event.position);
      for (const ParamId id : event.params) {
        position = std::min(position, UsesOf(id).first);
      }
      return Add(event.kind, position, event.params);
    }
    for (const ParamId id : event.params) {
      Add(event.kind, UsesOf(id).first, {id});
    }
    if (late) {
      lowered_.late.push_back(event.params);
    }
  }

  const Graph& graph_;
  const Subgraph& subgraph_;
  const GraphPlan& decided_;
  bool sink_ = false;
  bool late_ = false;
  std::vector<UseSpan> uses_;      // by storage
  std::vector<std::size_t> made_;  // by value: behind the op that makes it
  LoweredGraph lowered_;
};

}  // namespace

bool PullsForward(const Graph& graph, std::size_t g) {
  const Subgraph& subgraph = graph.graphs[g];
  if (subgraph.direction != Direction::kForward) {
    return false;
  }
  const auto order = RecordedOrder(subgraph);
  for (std::size_t i = BehindParams(graph, FindUses(graph, order)); i < order.size(); ++i) {
    const auto& launch = graph.op(order[i]).launch;
    if (launch && graph.kernel(*launch).kind != KernelKind::kPointwise &&
        ReadsIntegers(graph, *launch)) {
      return true;
    }
  }
  return false;
}

LoweredGraph TakeInductorOrder(const Graph& graph,
                               std::size_t g,
                               const GraphPlan& decided,
                               GatherOrder order,
                               bool prefetched) {
  const bool moves =
      order == GatherOrder::kInductor211 && graph.graphs[g].direction == Direction::kForward;
  return EventPlacer(graph, g, decided)
      .Place(moves && !prefetched, moves && prefetched && PullsForward(graph, g));
}

void GatherLate(const std::vector<std::vector<ParamId>>& late,
                const std::vector<ParamId>& persistent,
                GraphPlan& backward) {
  std::vector<GraphEvent> moved;
  const auto take = [&](ParamId id) {
    for (GraphEvent& event : backward.events) {
      const auto found = std::find(event.params.begin(), event.params.end(), id);
      if (event.kind == GraphEventKind::kGather && found != event.params.end()) {
        event.params.erase(found);
        return true;
      }
    }
    return false;
  };
  for (const std::vector<ParamId>& group : late) {
    GraphEvent event;
    for (const ParamId id : group) {
      const bool stays = std::find(persistent.begin(), persistent.end(), id) != persistent.end();
      if (!stays && take(id)) {
        event.params.push_back(id);
      }
    }
    if (!event.params.empty()) {
      moved.push_back(std::move(event));
    }
  }
  std::erase_if(backward.events, [](const GraphEvent& event) {
    return event.params.empty() && event.values.empty();
  });
  backward.events.insert(backward.events.begin(), moved.begin(), moved.end());
}

}  // namespace dcsim
