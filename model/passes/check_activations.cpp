#include "model/passes/check_activations.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "model/graph/step_facts.h"

namespace dcsim {
namespace {

/// A moment of an activation: in which graph, before which op, as which event of the list.
struct Place {
  std::size_t graph = 0;
  std::size_t position = 0;
  std::size_t event = 0;
};

constexpr std::array<std::string_view, 3> kNames = {"offload of ", "reload of ", "wait for "};

/// By kind of event: offload, reload, wait.
using Places = std::array<std::optional<Place>, kNames.size()>;

std::size_t IndexOf(GraphEventKind kind) {
  return static_cast<std::size_t>(kind) -
         static_cast<std::size_t>(GraphEventKind::kOffloadActivation);
}

std::map<ValueId, Places> CollectPlaces(const Plan& plan,
                                        const Graph& graph,
                                        std::vector<std::string>& faults) {
  std::map<ValueId, Places> places;
  for (std::size_t g = 0; g < plan.graphs.size(); ++g) {
    const auto& events = plan.graphs[g].events;
    for (std::size_t i = 0; i < events.size(); ++i) {
      for (const ValueId value : events[i].values) {
        auto& place = places[value][IndexOf(events[i].kind)];
        if (place) {
          faults.push_back("a second " + std::string(kNames[IndexOf(events[i].kind)]) +
                           graph.value(value).name);
        }
        place = {g, events[i].position, i};
      }
    }
  }
  return places;
}

class Checker {
 public:
  Checker(const Plan& plan, const Graph& graph, std::vector<std::string>& faults)
      : graph_(graph),
        faults_(faults) {
    for (const GraphPlan& decisions : plan.graphs) {
      uses_.push_back(FindUses(graph, decisions.order));
    }
  }

  void Check(ValueId value, const Places& places) {
    const std::string& name = graph_.value(value).name;
    if (!places[0] || !places[1] || !places[2]) {
      faults_.push_back(name + " has to be offloaded, reloaded and waited for");
      return;
    }
    const auto& [offload, reload, wait] = places;
    const std::size_t storage = graph_.storage_of(value).index();
    if (!MayLeave(graph_, value, offload->graph, reload->graph)) {
      faults_.push_back("offload of " + name + ", which is not saved for graph " +
                        std::to_string(reload->graph) + " alone");
    } else if (uses_[offload->graph][storage].last >= offload->position) {
      faults_.push_back("offload of " + name + " before its last use");
    }
    if (wait->graph != reload->graph || wait->event < reload->event) {
      faults_.push_back("wait for " + name + " before its reload");
    }
    if (wait->position > uses_[wait->graph][storage].first) {
      faults_.push_back("wait for " + name + " after its first use");
    }
  }

 private:
  const Graph& graph_;
  std::vector<std::vector<UseSpan>> uses_;  // by graph, by storage
  std::vector<std::string>& faults_;
};

/// By graph: whether an op of it touches a storage; the graph that allocates it, and where.
struct StorageUses {
  std::vector<bool> used;
  std::optional<std::size_t> made;
  bool on_host = false;
};

StorageUses UsesOf(const Graph& graph, StorageId storage) {
  StorageUses uses;
  uses.used.resize(graph.graphs.size());
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    const auto in_storage = [&](ValueId value) {
      return !value.is_none() && graph.storage_of(value) == storage;
    };
    const bool reads = std::any_of(op.inputs.begin(), op.inputs.end(), in_storage);
    const auto written = std::find_if(op.outputs.begin(), op.outputs.end(), in_storage);
    const bool writes = written != op.outputs.end();
    uses.used[op.graph.index()] = uses.used[op.graph.index()] || reads || writes;
    if (writes && !reads && !uses.made) {
      const auto output = static_cast<std::size_t>(written - op.outputs.begin());
      uses.made = op.graph.index();
      uses.on_host = IsMadeOnHost(graph, OpId(i), output);
    }
  }
  return uses;
}

}  // namespace

bool MayLeave(const Graph& graph, ValueId value, std::size_t from, std::size_t to) {
  const StorageId storage = graph.storage_of(value);
  const StorageUses uses = UsesOf(graph, storage);
  if (uses.made != from || uses.on_host || to <= from) {
    return false;
  }
  for (std::size_t g = 0; g < graph.graphs.size(); ++g) {
    if (uses.used[g] != (g == from || g == to)) {
      return false;
    }
    for (const GraphOutput& output : graph.graphs[g].outputs) {
      const bool saves = output.kind == GraphOutputKind::kSaved && output.value == value;
      if (graph.storage_of(output.value) == storage && !saves) {
        return false;
      }
    }
  }
  return true;
}

void CheckActivations(const Plan& plan, const Graph& graph, std::vector<std::string>& faults) {
  const auto places = CollectPlaces(plan, graph, faults);
  Checker checker(plan, graph, faults);
  for (const auto& [value, of_value] : places) {
    checker.Check(value, of_value);
  }
}

}  // namespace dcsim
