#pragma once

#include <string>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// The parameters that FSDP2 gathers and reduces together: those of a module that fully_shard
/// wraps, without those of modules wrapped within it.
struct ParamGroup {
  std::string module;           // "" for the root
  std::vector<ParamId> params;  // by id
};

/// The groups of a model by their first parameter, the root's last, if it has any. A tied parameter
/// belongs to the wrapped module among those that share it. Throws Error for a name in `wrap` that
/// no module with parameters has.
std::vector<ParamGroup> FindParamGroups(const Graph& graph, const std::vector<std::string>& wrap);

}  // namespace dcsim
