#pragma once

#include <string>

#include "model/ir/graph.h"
#include "model/ir/schedule.h"

namespace dcsim {

/// What a task does, for people: "aten::mm model.layers.0.mlp.up_proj",
/// "all-gather model.layers.0.mlp.up_proj.weight", "reduce 3 gradients".
std::string TaskLabel(const Schedule& schedule, const Graph& graph, TaskId id);

}  // namespace dcsim
