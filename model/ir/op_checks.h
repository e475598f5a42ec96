#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/ir/document.h"
#include "model/ir/graph.h"
#include "model/ir/operator_schema.h"

namespace dcsim {

/// What has been produced so far while the checks walk the step in execution order.
struct CheckState {
  const Graph& graph;
  Faults& faults;
  std::vector<char> value_exists;
  std::vector<char> storage_exists;
  std::vector<std::optional<OperatorSchema>> schemas;
  std::vector<std::optional<GraphInputKind>> resident_kind;  // by value: param, buffer or input
  std::vector<char> in_graph;     // by value: an input of the graph at hand, or made in it
  std::vector<char> is_resident;  // by storage: of a param, buffer or input
  std::vector<char> is_over;      // by value: an op has reused its storage

  std::string Name(ValueId id) const {
    return "value " + std::to_string(id.index()) + " (" + graph.value(id).name + ")";
  }
  void Produce(ValueId id) {
    value_exists[id.index()] = 1;
    storage_exists[graph.storage_of(id).index()] = 1;
  }
  bool Exists(ValueId id) const { return value_exists[id.index()] != 0; }
};

/// Adds a fault where arguments are not those that a schema of the graph's table takes.
void CheckArguments(CheckState& state,
                    std::uint32_t schema,
                    const std::vector<Argument>& arguments,
                    const Path& path);

/// Adds a fault for every rule that an op breaks (CheckGraph), and marks its outputs as produced.
void CheckOp(CheckState& state, const Op& op, const Path& path);

}  // namespace dcsim
