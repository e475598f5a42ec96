#include "model/ir/plan_reader.h"

#include <algorithm>
#include <array>
#include <map>

#include "model/ir/plan_options.h"

namespace dcsim {
namespace {

constexpr std::string_view kSpecFormat = "dc-plan-spec/1";
constexpr std::string_view kPlanFormat = "dc-plan/1";

void ReadKeepGathered(ObjectReader& object, KeepGathered& keep) {
  const Json* value = object.Find("keep_gathered");
  if (value == nullptr || *value == "none") {
    return;
  }
  if (*value == "all") {
    keep.all = true;
    return;
  }
  const Path path = object.At("keep_gathered");
  if (!value->is_array()) {
    object.faults().Add(path, "expected none, all, or a list of parameter names with '*'");
    return;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    if (auto pattern = ReadString((*value)[i], Path(path, i), object.faults())) {
      keep.patterns.push_back(*std::move(pattern));
    }
  }
}

Json PrintKeepGathered(const KeepGathered& keep) {
  if (keep.all) {
    return "all";
  }
  return keep.patterns.empty() ? Json("none") : Json(keep.patterns);
}

void ReadPasses(ObjectReader& object, std::optional<std::vector<std::string>>& passes) {
  const Json* value = object.Find("passes");
  if (value == nullptr || *value == "default") {
    return;
  }
  const Path path = object.At("passes");
  if (!value->is_array()) {
    object.faults().Add(path, "expected default, or a list of passes");
    return;
  }
  passes.emplace();
  for (std::size_t i = 0; i < value->size(); ++i) {
    if (auto pass = ReadString((*value)[i], Path(path, i), object.faults())) {
      passes->push_back(*std::move(pass));
    }
  }
}

constexpr std::array<std::string_view, 2> kGatherTimesNames = {"deepspeed", "as_measured"};

void ReadEagerGathers(ObjectReader& object, EagerGathers& eager) {
  const auto read = [&object](std::string_view key, std::int64_t& target) {
    constexpr std::int64_t kMost = std::int64_t{1} << 50;
    if (object.Optional(key, ReadElements, target) && (target < 0 || target > kMost)) {
      object.faults().Add(object.At(key), "expected from 0 to 1.1e15 elements");
    }
  };
  read("prefetch_bucket", eager.prefetch_bucket);
  read("persistence_threshold", eager.persistence_threshold);
  read("max_live", eager.max_live);
  read("max_reuse_distance", eager.max_reuse_distance);
}

void PrintEagerGathers(const EagerGathers& eager, Json& document) {
  const auto print = [](std::int64_t elements) { return std::to_string(elements) + " elements"; };
  document["prefetch_bucket"] = print(eager.prefetch_bucket);
  document["persistence_threshold"] = print(eager.persistence_threshold);
  document["max_live"] = print(eager.max_live);
  document["max_reuse_distance"] = print(eager.max_reuse_distance);
}

/// What DeepSpeed does and plain-1 does better: it frees gathered parameters behind record_stream,
/// and leaves reduce buffers to the graph that runs last.
void SetPolicyDefaults(PlanSpec& spec) {
  if (spec.policy == "deepspeed-eager") {
    spec.options.release = ReleaseMode::kRecordStream;
    spec.options.gradient_buckets = GradientBuckets::kEager;
  }
  if (spec.policy.starts_with("deepcompile-")) {
    spec.options.release = ReleaseMode::kRecordStream;
    spec.options.buffer_lifetime = BufferLifetime::kPr8036;
  }
}

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

std::vector<OpId> RecordedOrder(const Subgraph& subgraph) {
  std::vector<OpId> order;
  for (std::size_t i = 0; i < subgraph.op_count; ++i) {
    order.emplace_back(subgraph.first_op + i);
  }
  return order;
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

constexpr std::array<std::string_view, 4> kEventNames = {"gather", "wait", "release", "reduce"};

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
  if (const Json* params = object.Require("params")) {
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
    printed["events"].push_back({{"position", event.position},
                                 {"kind", kEventNames[static_cast<std::size_t>(event.kind)]},
                                 {"params", ParamNames(event.params, graph)}});
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

PlanSpec ReadPlanSpec(const Json& document, const Locator& locate) {
  RequireFormat(document, kSpecFormat, locate);
  Faults faults(locate);
  const Path root;
  ObjectReader object(document, root, faults);
  PlanSpec spec;
  object.Require("format");
  object.Required("policy", ReadString, spec.policy);
  SetPolicyDefaults(spec);
  ReadScheduleOptions(object, spec.options);
  constexpr std::int64_t kMostAhead = 1'000'000;
  if (object.Optional("gather_ahead", ReadInteger, spec.gather_ahead) &&
      (spec.gather_ahead < 0 || spec.gather_ahead > kMostAhead)) {
    faults.Add(object.At("gather_ahead"), "expected a count from 0 to 1000000");
  }
  ReadKeepGathered(object, spec.keep_gathered);
  ReadPasses(object, spec.passes);
  object.OptionalChoice("gather_times", kGatherTimesNames, spec.gather_times);
  ReadEagerGathers(object, spec.eager_gathers);
  object.RejectUnknown();
  faults.ThrowIfAny();
  return spec;
}

Json PrintPlanSpec(const PlanSpec& spec) {
  Json document = {{"format", kSpecFormat}, {"policy", spec.policy}};
  PrintScheduleOptions(spec.options, document);
  document["gather_ahead"] = spec.gather_ahead;
  document["keep_gathered"] = PrintKeepGathered(spec.keep_gathered);
  document["passes"] = spec.passes ? Json(*spec.passes) : Json("default");
  document["gather_times"] = kGatherTimesNames[static_cast<std::size_t>(spec.gather_times)];
  PrintEagerGathers(spec.eager_gathers, document);
  return document;
}

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
