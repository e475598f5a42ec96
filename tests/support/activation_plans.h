#pragma once

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// Makes every saved activation that may leave do so, right behind its last use, and come back a
/// few ops before its first one in the backward. The plan's graphs need events. Returns how many.
std::size_t OffloadAllActivations(const Graph& graph, Plan& plan);

}  // namespace dcsim
