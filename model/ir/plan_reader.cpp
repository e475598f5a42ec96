#include "model/ir/plan_reader.h"

#include <algorithm>
#include <array>
#include <map>

#include "model/ir/plan_options.h"
#include "model/ir/recorded_order.h"

namespace dcsim {
namespace {

constexpr std::string_view kPlanFormat = "dc-plan/1";

/// What is needed to read the decisions of a plan.
struct PlanReader {
  const Graph& graph;
  Faults& faults;
  std::map<std::string_view, ParamId> params;
  std::vector<std::string_view> names;

  PlanReader(const Graph& the_graph, Faults& the_faults) : graph(the_graph), faults(the_faults) {
    for (std::size_t i = 0; i < graph.params.size(); ++i) {
      params.emplace(graph.params[i].name, ParamId(i));
      names.push_back(graph.params[i].name);
    }
  }
};

std::vector<ParamId> ReadParams(PlanReader& reader, const Json& list, const Path& path) {
  std::vector<ParamId> ids;
  if (!list.is_array()) {
    reader.faults.Add(path, "expected a list of parameter names");
    return ids;
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto name = ReadString(list[i], Path(path, i), reader.faults);
    if (!name) {
      continue;
    }
    const auto found = reader.params.find(*name);
    if (found == reader.params.end()) {
      reader.faults.Add(Path(path, i), "the graph has no parameter '" + *name + "'" +
                                           DidYouMean(*name, reader.names));
      continue;
    }
    ids.push_back(found->second);
  }
  return ids;
}

std::vector<OpId> ReadOrder(PlanReader& reader,
                            const Json& value,
                            const Subgraph& subgraph,
                            const Path& path) {
  if (value == "recorded") {
    return RecordedOrder(subgraph);
  }
  std::vector<OpId> order;
  if (!value.is_array()) {
    reader.faults.Add(path, "expected \"recorded\" or a list of op positions in the graph");
    return order;
  }
  for (std::size_t i = 0; i < value.size(); ++i) {
    const auto position = ReadInteger(value[i], Path(path, i), reader.faults);
    const bool valid =
        position && *position >= 0 && *position < static_cast<std::int64_t>(subgraph.op_count);
    if (position && !valid) {
      reader.faults.Add(Path(path, i),
                        "expected a position below " + std::to_string(subgraph.op_count));
    }
    order.emplace_back(subgraph.first_op + static_cast<std::size_t>(valid ? *position : 0));
  }
  return order;
}

GatherGroup ReadGather(PlanReader& reader, const Json& value, const Path& path) {
  ObjectReader object(value, path, reader.faults);
  GatherGroup group;
  std::int64_t position = 0;
  if (object.Required("position", ReadInteger, position) && position < 0) {
    reader.faults.Add(object.At("position"), "expected 0 or more");
  }
  group.position = static_cast<std::size_t>(std::max<std::int64_t>(0, position));
  if (const Json* params = object.Require("params")) {
    group.params = ReadParams(reader, *params, object.At("params"));
  }
  object.RejectUnknown();
  return group;
}

constexpr std::array<std::string_view, 8> kEventNames = {"gather",
                                                         "wait",
                                                         "release",
                                                         "reduce",
                                                         "reload_shard",
                                                         "offload_activation",
                                                         "reload_activation",
                                                         "wait_activation"};

bool MovesActivations(GraphEventKind kind) {
  return kind >= GraphEventKind::kOffloadActivation;
}

/// Activations are places in the graph's list of values, whose names need not differ.
std::vector<ValueId> ReadValues(PlanReader& reader, const Json& list, const Path& path) {
  std::vector<ValueId> values;
  if (!list.is_array()) {
    reader.faults.Add(path, "expected a list of places in the graph's values");
    return values;
  }
  const auto count = static_cast<std::int64_t>(reader.graph.values.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto place = ReadInteger(list[i], Path(path, i), reader.faults);
    if (place && (*place < 0 || *place >= count)) {
      reader.faults.Add(Path(path, i), "expected a place below " + std::to_string(count));
    } else if (place) {
      values.emplace_back(static_cast<std::size_t>(*place));
    }
  }
  return values;
}

GraphEvent ReadEvent(PlanReader& reader, const Json& value, const Path& path) {
  ObjectReader object(value, path, reader.faults);
  GraphEvent event;
  std::int64_t position = 0;
  if (object.Required("position", ReadInteger, position) && position < 0) {
    reader.faults.Add(object.At("position"), "expected 0 or more");
  }
  event.position = static_cast<std::size_t>(std::max<std::int64_t>(0, position));
  if (object.Require("kind") != nullptr) {
    object.OptionalChoice("kind", kEventNames, event.kind);
  }
  if (MovesActivations(event.kind)) {
    if (const Json* values = object.Require("values")) {
      event.values = ReadValues(reader, *values, object.At("values"));
    }
  } else if (const Json* params = object.Require("params")) {
    event.params = ReadParams(reader, *params, object.At("params"));
  }
  object.RejectUnknown();
  return event;
}

void ReadEvents(PlanReader& reader, ObjectReader& object, std::vector<GraphEvent>& events) {
  if (object.Find("events") == nullptr) {
    return;
  }
  if (const Json* list = object.RequireArray("events")) {
    const Path path = object.At("events");
    for (std::size_t i = 0; i < list->size(); ++i) {
      events.push_back(ReadEvent(reader, (*list)[i], Path(path, i)));
    }
  }
}

constexpr std::array<std::string_view, 4> kMoveNames = {"offload", "reload", "synchronize",
                                                        "synchronize_device"};

/// "bfloat16.exp_avg"
std::string NameOf(const OptimizerState& state) {
  return std::string(DTypeName(state.dtype)) + "." +
         std::string(OptimizerTensorNames()[static_cast<std::size_t>(state.tensor)]);
}

std::optional<OptimizerState> FindState(const std::string& name) {
  const std::size_t dot = std::min(name.find('.'), name.size());
  const auto dtype = FindDType(name.substr(0, dot));
  const auto names = OptimizerTensorNames();
  const auto tensor =
      std::find(names.begin(), names.end(), name.substr(std::min(dot + 1, name.size())));
  if (!dtype || tensor == names.end()) {
    return std::nullopt;
  }
  return OptimizerState{*dtype, static_cast<OptimizerTensor>(tensor - names.begin())};
}

StateMove ReadStateMove(const Json& value, const Path& path, Faults& faults) {
  ObjectReader object(value, path, faults);
  StateMove move;
  std::int64_t position = 0;
  if (object.Required("position", ReadInteger, position) && position < 0) {
    faults.Add(object.At("position"), "expected 0 or more");
  }
  move.position = static_cast<std::size_t>(std::max<std::int64_t>(0, position));
  if (object.Require("kind") != nullptr) {
    object.OptionalChoice("kind", kMoveNames, move.kind);
  }
  const Json* list = object.RequireArray("states");
  const Path here = object.At("states");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto name = ReadString((*list)[i], Path(here, i), faults);
    const auto state = name ? FindState(*name) : std::nullopt;
    if (state) {
      move.states.push_back(*state);
    } else if (name) {
      faults.Add(Path(here, i), "expected a dtype and " + JoinAlternatives(OptimizerTensorNames()) +
                                    ", such as bfloat16.exp_avg, found '" + *name + "'");
    }
  }
  object.RejectUnknown();
  return move;
}

void ReadStateMoves(ObjectReader& object, std::vector<StateMove>& moves) {
  if (object.Find("state_moves") == nullptr) {
    return;
  }
  if (const Json* list = object.RequireArray("state_moves")) {
    const Path path = object.At("state_moves");
    for (std::size_t i = 0; i < list->size(); ++i) {
      moves.push_back(ReadStateMove((*list)[i], Path(path, i), object.faults()));
    }
  }
}

GraphPlan ReadGraphPlan(PlanReader& reader,
                        const Json& value,
                        const Subgraph& subgraph,
                        const Path& path) {
  ObjectReader object(value, path, reader.faults);
  GraphPlan decisions;
  if (const Json* order = object.Require("order")) {
    decisions.order = ReadOrder(reader, *order, subgraph, object.At("order"));
  }
  if (const Json* gathers = object.RequireArray("gathers")) {
    const Path here = object.At("gathers");
    for (std::size_t i = 0; i < gathers->size(); ++i) {
      decisions.gathers.push_back(ReadGather(reader, (*gathers)[i], Path(here, i)));
    }
  }
  ReadEvents(reader, object, decisions.events);
  ReadStateMoves(object, decisions.state_moves);
  object.RejectUnknown();
  return decisions;
}

Json ParamNames(const std::vector<ParamId>& ids, const Graph& graph) {
  Json names = Json::array();
  for (const ParamId id : ids) {
    names.push_back(graph.param(id).name);
  }
  return names;
}

Json Places(const std::vector<ValueId>& values) {
  Json places = Json::array();
  for (const ValueId value : values) {
    places.push_back(value.index());
  }
  return places;
}

Json PrintGraphPlan(const GraphPlan& decisions, const Subgraph& subgraph, const Graph& graph) {
  Json order = "recorded";
  if (decisions.order != RecordedOrder(subgraph)) {
    order = Json::array();
    for (const OpId id : decisions.order) {
      order.push_back(id.index() - subgraph.first_op);
    }
  }
  Json gathers = Json::array();
  for (const GatherGroup& group : decisions.gathers) {
    gathers.push_back({{"position", group.position}, {"params", ParamNames(group.params, graph)}});
  }
  Json printed = {{"order", order}, {"gathers", gathers}};
  for (const GraphEvent& event : decisions.events) {
    Json row = {{"position", event.position},
                {"kind", kEventNames[static_cast<std::size_t>(event.kind)]}};
    if (MovesActivations(event.kind)) {
      row["values"] = Places(event.values);
    } else {
      row["params"] = ParamNames(event.params, graph);
    }
    printed["events"].push_back(std::move(row));
  }
  for (const StateMove& move : decisions.state_moves) {
    Json states = Json::array();
    for (const OptimizerState& state : move.states) {
      states.push_back(NameOf(state));
    }
    printed["state_moves"].push_back({{"position", move.position},
                                      {"kind", kMoveNames[static_cast<std::size_t>(move.kind)]},
                                      {"states", states}});
  }
  return printed;
}

void ReadRanks(ObjectReader& object, int& target) {
  constexpr std::int64_t kMost = 1'000'000;
  std::int64_t ranks = 0;
  if (!object.Required("ranks", ReadInteger, ranks)) {
    return;
  }
  if (ranks < 1 || ranks > kMost) {
    object.faults().Add(object.At("ranks"), "expected a count from 1 to 1000000");
    return;
  }
  target = static_cast<int>(ranks);
}

void ReadGraphPlans(PlanReader& reader, ObjectReader& object, Plan& plan) {
  const Json* graphs = object.RequireArray("graphs");
  if (graphs == nullptr) {
    return;
  }
  const Path path = object.At("graphs");
  if (graphs->size() != reader.graph.graphs.size()) {
    reader.faults.Add(path, "expected one entry for each of the workload's " +
                                std::to_string(reader.graph.graphs.size()) + " graphs");
    return;
  }
  for (std::size_t g = 0; g < graphs->size(); ++g) {
    plan.graphs.push_back(
        ReadGraphPlan(reader, (*graphs)[g], reader.graph.graphs[g], Path(path, g)));
  }
}

}  // namespace

Plan ReadPlan(const Json& document, const Graph& graph, const Locator& locate) {
  RequireFormat(document, kPlanFormat, locate);
  Faults faults(locate);
  PlanReader reader(graph, faults);
  const Path root;
  ObjectReader object(document, root, faults);
  Plan plan;
  object.Require("format");
  object.Required("policy", ReadString, plan.policy);
  ReadRanks(object, plan.ranks);
  ReadScheduleOptions(object, plan.options);
  if (const Json* persistent = object.Require("persistent")) {
    plan.persistent = ReadParams(reader, *persistent, object.At("persistent"));
    std::sort(plan.persistent.begin(), plan.persistent.end());
    plan.persistent.erase(std::unique(plan.persistent.begin(), plan.persistent.end()),
                          plan.persistent.end());
  }
  ReadGraphPlans(reader, object, plan);
  object.RejectUnknown();
  faults.ThrowIfAny();
  return plan;
}

Json PrintPlan(const Plan& plan, const Graph& graph) {
  Json document = {{"format", kPlanFormat}, {"policy", plan.policy}, {"ranks", plan.ranks}};
  PrintScheduleOptions(plan.options, document);
  document["persistent"] = ParamNames(plan.persistent, graph);
  document["graphs"] = Json::array();
  for (std::size_t g = 0; g < plan.graphs.size(); ++g) {
    document["graphs"].push_back(PrintGraphPlan(plan.graphs[g], graph.graphs[g], graph));
  }
  return document;
}

}  // namespace dcsim
