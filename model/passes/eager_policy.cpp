#include "model/passes/eager_policy.h"

#include <algorithm>

#include "model/graph/step_facts.h"

namespace dcsim {
namespace {

/// Neighbouring ops of one module in one graph that use parameters.
struct Visit {
  std::size_t graph = 0;
  std::uint32_t module = 0;
  std::size_t first = 0;  // positions of its ops in the recorded order
  std::size_t last = 0;
  std::vector<ParamId> params;  // by id, each once
};

std::vector<ParamId> ParamsOf(const Graph& graph, const StepFacts& facts, const Op& op) {
  std::vector<ParamId> params;
  for (const ValueId input : op.inputs) {
    const ParamId param = facts.param_of[graph.storage_of(input).index()];
    if (!param.is_none()) {
      params.push_back(param);
    }
  }
  return params;
}

/// The visits of a micro-step in the order of execution.
std::vector<Visit> FindVisits(const Graph& graph) {
  const StepFacts facts = AnalyseStep(graph);
  std::vector<Visit> visits;
  for (std::size_t g = 0; g < graph.graphs.size(); ++g) {
    for (std::size_t i = 0; i < graph.graphs[g].op_count; ++i) {
      const Op& op = graph.ops[graph.graphs[g].first_op + i];
      const auto params = ParamsOf(graph, facts, op);
      if (params.empty()) {
        continue;
      }
      const bool goes_on =
          !visits.empty() && visits.back().graph == g && visits.back().module == op.module;
      if (!goes_on) {
        visits.push_back({g, op.module, i, i, {}});
      }
      visits.back().last = i;
      visits.back().params.insert(visits.back().params.end(), params.begin(), params.end());
    }
  }
  for (Visit& visit : visits) {
    std::sort(visit.params.begin(), visit.params.end());
    visit.params.erase(std::unique(visit.params.begin(), visit.params.end()), visit.params.end());
  }
  return visits;
}

/// Walks the visits of a micro-step and decides gathers and releases.
class EagerGatherer {
 public:
  EagerGatherer(const PlanSpec& spec, const Graph& graph)
      : limits_(spec.eager_gathers),
        graph_(graph),
        visits_(FindVisits(graph)),
        alive_(graph.params.size()),
        events_(graph.graphs.size()),
        gathered_in_(graph.params.size(), SIZE_MAX),
        waited_in_(graph.params.size(), SIZE_MAX),
        next_visits_(NextVisits()) {}

  /// By graph: the events, in host order.
  std::vector<std::vector<GraphEvent>> Run() {
    for (std::size_t v = 0; v < visits_.size(); ++v) {
      Fetch(v);
      Prefetch(v);
      Release(v);
    }
    for (auto& events : events_) {
      std::stable_sort(events.begin(), events.end(), [](const GraphEvent& a, const GraphEvent& b) {
        return a.position < b.position;
      });
    }
    return std::move(events_);
  }

  std::vector<ParamId> Persistent() const {
    std::vector<ParamId> persistent;
    for (std::size_t i = 0; i < graph_.params.size(); ++i) {
      if (IsPersistent(ParamId(i))) {
        persistent.emplace_back(i);
      }
    }
    return persistent;
  }

 private:
  bool IsPersistent(ParamId id) const { return graph_.numel(id) <= limits_.persistence_threshold; }

  /// By visit and place among its parameters: the next visit that uses it, or one behind the last.
  std::vector<std::vector<std::size_t>> NextVisits() const {
    std::vector<std::size_t> next(graph_.params.size(), visits_.size());
    std::vector<std::vector<std::size_t>> all(visits_.size());
    for (std::size_t v = visits_.size(); v-- > 0;) {
      for (const ParamId id : visits_[v].params) {
        all[v].push_back(next[id.index()]);
        next[id.index()] = v;
      }
    }
    return all;
  }

  void AddEvent(GraphEventKind kind,
                std::size_t g,
                std::size_t position,
                const std::vector<ParamId>& params) {
    if (!params.empty()) {
      events_[g].push_back({kind, position, params});
    }
  }

  /// A graph names each parameter that it uses once, also where the parameter is still gathered.
  void Gather(std::size_t g, std::size_t position, const std::vector<ParamId>& params) {
    std::vector<ParamId> named;
    for (const ParamId id : params) {
      if (gathered_in_[id.index()] != g) {
        gathered_in_[id.index()] = g;
        named.push_back(id);
      }
      live_ += alive_[id.index()] ? 0 : graph_.numel(id);
      alive_[id.index()] = true;
    }
    AddEvent(GraphEventKind::kGather, g, position, named);
  }

  void Fetch(std::size_t v) {
    const Visit& visit = visits_[v];
    Gather(visit.graph, visit.first, visit.params);
    std::vector<ParamId> waited;
    for (const ParamId id : visit.params) {
      if (waited_in_[id.index()] != visit.graph) {
        waited_in_[id.index()] = visit.graph;
        waited.push_back(id);
      }
    }
    AddEvent(GraphEventKind::kWait, visit.graph, visit.first, waited);
    queue_ = std::max(queue_, v + 1);
  }

  /// One group for the parameters of the modules that come next, behind the wait.
  void Prefetch(std::size_t v) {
    const std::size_t g = visits_[v].graph;
    const std::int64_t budget = std::min(limits_.max_live - live_, limits_.prefetch_bucket);
    std::int64_t collected = 0;
    std::vector<ParamId> params;
    while (collected < budget && queue_ < visits_.size() && visits_[queue_].graph == g) {
      for (const ParamId id : visits_[queue_].params) {
        if (!alive_[id.index()]) {
          params.push_back(id);
          collected += graph_.numel(id);
        }
      }
      ++queue_;
    }
    Gather(g, visits_[v].first, params);
  }

  /// Whether a visit `next` follows before `max_reuse_distance` elements of others.
  bool IsReusedSoon(std::size_t v, std::size_t next) const {
    std::int64_t distance = 0;
    for (std::size_t w = v + 1; w < visits_.size() && distance < limits_.max_reuse_distance; ++w) {
      if (w == next) {
        return true;
      }
      for (const ParamId id : visits_[w].params) {
        distance += graph_.numel(id);
      }
    }
    return false;
  }

  void Release(std::size_t v) {
    const Visit& visit = visits_[v];
    std::vector<ParamId> released;
    for (std::size_t i = 0; i < visit.params.size(); ++i) {
      const ParamId id = visit.params[i];
      const std::size_t next = next_visits_[v][i];
      const bool again_here = next < visits_.size() && visits_[next].graph == visit.graph;
      if (again_here || (!IsPersistent(id) && IsReusedSoon(v, next))) {
        continue;
      }
      released.push_back(id);  // of no effect for parameters that stay for good
      if (!IsPersistent(id)) {
        alive_[id.index()] = false;
        live_ -= graph_.numel(id);
      }
    }
    AddEvent(GraphEventKind::kRelease, visit.graph, visit.last + 1, released);
  }

  const EagerGathers& limits_;
  const Graph& graph_;
  std::vector<Visit> visits_;
  std::vector<bool> alive_;  // by param
  std::vector<std::vector<GraphEvent>> events_;
  std::vector<std::size_t> gathered_in_;  // by param: the graph that named it last
  std::vector<std::size_t> waited_in_;    // … that waited for it last
  std::vector<std::vector<std::size_t>> next_visits_;
  std::int64_t live_ = 0;  // elements gathered
  std::size_t queue_ = 0;  // the first visit that nothing was prefetched for
};

/// Reductions right behind the ops that make gradients.
void AddReductions(const Graph& graph, std::size_t g, GraphPlan& plan) {
  const Subgraph& subgraph = graph.graphs[g];
  std::vector<std::size_t> made(graph.values.size());
  for (std::size_t i = 0; i < subgraph.op_count; ++i) {
    for (const ValueId output : graph.ops[subgraph.first_op + i].outputs) {
      if (!output.is_none()) {
        made[output.index()] = i + 1;
      }
    }
  }
  for (const GraphOutput& output : subgraph.outputs) {
    if (output.kind == GraphOutputKind::kGradient) {
      plan.events.push_back({GraphEventKind::kReduce, made[output.value.index()], {output.param}});
    }
  }
  std::stable_sort(
      plan.events.begin(), plan.events.end(),
      [](const GraphEvent& a, const GraphEvent& b) { return a.position < b.position; });
}

}  // namespace

Plan ResolveEager(const PlanSpec& spec, const Graph& graph, int ranks) {
  Plan plan;
  plan.policy = spec.policy;
  plan.ranks = ranks;
  plan.options = spec.options;
  EagerGatherer gatherer(spec, graph);
  std::vector<std::vector<GraphEvent>> events(graph.graphs.size());
  if (spec.options.stage == 3) {
    events = gatherer.Run();
    plan.persistent = gatherer.Persistent();
  }
  for (std::size_t g = 0; g < graph.graphs.size(); ++g) {
    GraphPlan decisions;
    for (std::size_t i = 0; i < graph.graphs[g].op_count; ++i) {
      decisions.order.emplace_back(graph.graphs[g].first_op + i);
    }
    decisions.events = std::move(events[g]);
    if (spec.options.stage == 3) {
      AddReductions(graph, g, decisions);
    }
    plan.graphs.push_back(std::move(decisions));
  }
  return plan;
}

}  // namespace dcsim
