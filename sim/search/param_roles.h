#pragma once

#include <cstdint>
#include <vector>

#include "model/ir/graph.h"

namespace dcsim {

/// By param: which ones have the same name in every layer, `model.layers.17.mlp.up_proj.weight` and
/// `model.layers.18.mlp.up_proj.weight` the same role. Numbers from 0, by first parameter.
std::vector<std::uint32_t> ParamRoles(const Graph& graph);

}  // namespace dcsim
