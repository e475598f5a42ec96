#include "model/passes/check_events.h"

#include <algorithm>
#include <array>
#include <optional>

#include "model/graph/step_facts.h"

namespace dcsim {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"gather of ", "wait for ", "release of ",
                                                    "reduction of "};

/// Where each kind of event stands for one parameter, if it does.
using Places = std::array<std::optional<std::size_t>, kNames.size()>;

std::size_t IndexOf(GraphEventKind kind) {
  return static_cast<std::size_t>(kind);
}

/// By parameter: its events. Reports events that are out of place in the list or stand twice.
std::vector<Places> CollectPlaces(const Graph& graph,
                                  const GraphPlan& decisions,
                                  std::vector<std::string>& faults) {
  std::vector<Places> places(graph.params.size());
  std::size_t before = 0;
  for (const GraphEvent& event : decisions.events) {
    if (event.position < before || event.position > decisions.order.size()) {
      faults.push_back("event positions must ascend and stay within the graph, found " +
                       std::to_string(event.position));
    }
    before = std::max(before, event.position);
    for (const ParamId id : event.params) {
      if (event.kind == GraphEventKind::kReloadShard) {
        continue;
      }
      auto& place = places[id.index()][IndexOf(event.kind)];
      if (place) {
        faults.push_back("a second " + std::string(kNames[IndexOf(event.kind)]) +
                         graph.param(id).name + " in one graph");
      }
      place = event.position;
    }
  }
  return places;
}

/// Gather, wait and release of a parameter against its uses. A wait behind its gather and a release
/// behind its wait are a matter of the list, not of positions alone: CheckSequence.
///
///   stays    a later graph uses the parameter, so that it may stay until then
///   grouped  it may be gathered for others of its group, and stays until the backward lets it go
void CheckUses(const std::string& name,
               const UseSpan& span,
               const Places& places,
               bool stays,
               bool grouped,
               std::vector<std::string>& faults) {
  for (const GraphEventKind kind :
       {GraphEventKind::kGather, GraphEventKind::kWait, GraphEventKind::kRelease}) {
    const auto& place = places[IndexOf(kind)];
    const std::string what = std::string(kNames[IndexOf(kind)]) + name;
    const bool may_lack = (stays || grouped) && kind == GraphEventKind::kRelease;
    if (grouped && !span.used) {
      continue;
    }
    if (span.used && !place && !may_lack) {
      faults.push_back("no " + what + ", which the graph uses");
    } else if (!span.used && place) {
      faults.push_back(what + ", which the graph does not use");
    } else if (place && kind == GraphEventKind::kRelease && *place <= span.last) {
      faults.push_back(what + " before its last use");
    } else if (place && kind != GraphEventKind::kRelease && *place > span.first) {
      faults.push_back(what + " after its first use");
    }
  }
}

/// Each gather before its wait in the list.
void CheckSequence(const Graph& graph,
                   const GraphPlan& decisions,
                   std::vector<std::string>& faults) {
  std::vector<bool> gathered(graph.params.size());
  for (const GraphEvent& event : decisions.events) {
    for (const ParamId id : event.params) {
      if (event.kind == GraphEventKind::kGather) {
        gathered[id.index()] = true;
      } else if (event.kind == GraphEventKind::kWait && !gathered[id.index()]) {
        faults.push_back("wait for " + graph.param(id).name + " before its gather");
      }
    }
  }
}

/// By value: the position behind the op that makes it in this order, 0 where none does.
std::vector<std::size_t> FindMadeBefore(const Graph& graph, const GraphPlan& decisions) {
  std::vector<std::size_t> made(graph.values.size());
  for (std::size_t i = 0; i < decisions.order.size(); ++i) {
    for (const ValueId output : graph.op(decisions.order[i]).outputs) {
      if (!output.is_none()) {
        made[output.index()] = i + 1;
      }
    }
  }
  return made;
}

/// `made`: the position from which the gradient is there, nothing where the graph makes none.
void CheckReduction(const std::string& name,
                    std::optional<std::size_t> made,
                    std::optional<std::size_t> place,
                    std::vector<std::string>& faults) {
  if (!made && place) {
    faults.push_back("reduction of " + name + ", whose gradient the graph does not make");
  } else if (made && !place) {
    faults.push_back("no reduction of " + name + ", whose gradient the graph makes");
  } else if (made && *place < *made) {
    faults.push_back("reduction of " + name + " before its gradient is made");
  }
}

/// By storage: whether an op of a graph behind `g` uses it.
std::vector<bool> FindUsedLater(const Graph& graph, std::size_t g) {
  std::vector<bool> used(graph.storages.size());
  for (std::size_t i = graph.graphs[g].first_op + graph.graphs[g].op_count; i < graph.ops.size();
       ++i) {
    for (const ValueId input : graph.ops[i].inputs) {
      used[graph.storage_of(input).index()] = true;
    }
  }
  return used;
}

/// A shard comes to the GPU for a gather of the same graph.
void CheckShardReloads(const Graph& graph,
                       const GraphPlan& decisions,
                       const std::vector<Places>& places,
                       std::vector<std::string>& faults) {
  for (const GraphEvent& event : decisions.events) {
    for (const ParamId id : event.params) {
      const bool reloads = event.kind == GraphEventKind::kReloadShard;
      const auto& gather = places[id.index()][IndexOf(GraphEventKind::kGather)];
      if (reloads && (!gather || *gather < event.position)) {
        faults.push_back("reload of the shard of " + graph.param(id).name +
                         ", which no gather behind it uses");
      }
    }
  }
}

/// By value: the position from which a gradient may be reduced.
std::vector<std::size_t> FindReducibleFrom(const Graph& graph,
                                           Sharding sharding,
                                           const GraphPlan& decisions) {
  if (sharding == Sharding::kZero) {
    return FindMadeBefore(graph, decisions);
  }
  const auto written = FindWritten(graph, decisions.order);
  std::vector<std::size_t> from(graph.values.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    from[i] = written[graph.values[i].storage.index()];
  }
  return from;
}

}  // namespace

std::vector<std::size_t> FindWritten(const Graph& graph, const std::vector<OpId>& order) {
  const StepFacts facts = AnalyseStep(graph);
  std::vector<std::size_t> written(graph.storages.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Op& op = graph.op(order[i]);
    for (const ValueId output : op.outputs) {
      if (!output.is_none() && !facts.is_view[order[i].index()]) {
        written[graph.storage_of(output).index()] = i + 1;
      }
    }
  }
  return written;
}

const GraphOutput* FindGradient(const Subgraph& subgraph, ParamId param) {
  for (const GraphOutput& output : subgraph.outputs) {
    if (output.kind == GraphOutputKind::kGradient && output.param == param) {
      return &output;
    }
  }
  return nullptr;
}

void CheckEvents(const Graph& graph,
                 std::size_t g,
                 Sharding sharding,
                 const GraphPlan& decisions,
                 std::vector<std::string>& faults) {
  if (!decisions.gathers.empty()) {
    faults.push_back("graph " + std::to_string(g) +
                     " has gathers and events; expected one of both");
  }
  const auto places = CollectPlaces(graph, decisions, faults);
  const auto uses = FindUses(graph, decisions.order);
  const auto made = FindReducibleFrom(graph, sharding, decisions);
  const auto used_later = FindUsedLater(graph, g);
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    const std::string& name = graph.params[i].name;
    const std::size_t storage = graph.storage_of(graph.params[i].value).index();
    CheckUses(name, uses[storage], places[i], used_later[storage], sharding == Sharding::kFsdp2,
              faults);
    const GraphOutput* gradient = FindGradient(graph.graphs[g], ParamId(i));
    CheckReduction(
        name, gradient == nullptr ? std::nullopt : std::optional(made[gradient->value.index()]),
        places[i][IndexOf(GraphEventKind::kReduce)], faults);
  }
  CheckSequence(graph, decisions, faults);
  CheckShardReloads(graph, decisions, places, faults);
}

}  // namespace dcsim
