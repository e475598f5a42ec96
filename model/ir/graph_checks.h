#pragma once

#include "model/ir/document.h"
#include "model/ir/graph.h"

namespace dcsim {

/// Adds a fault for every broken rule of docs/formats.md, dc-graph/1: order of production and use,
/// views inside their storages, aliases, the link between forward and backward, the loss,
/// gradients, and arguments against schemas. Ids must be in range already.
void CheckGraph(const Graph& graph, Faults& faults);

}  // namespace dcsim
