#pragma once

#include <string>

#include "model/ir/graph.h"
#include "model/ir/schedule.h"
#include "model/ir/timeline.h"

namespace dcsim {

/// Memory over one step as CSV, a line after each task that allocates or frees, in host order:
///
///   time_ns,rank,task,kind,label,live_bytes,allocated_bytes,active_bytes,reserved_bytes
///   105200,0,17,compute,aten::mm model.layers.0.mlp.up_proj,1073741824,…
std::string PrintMemoryCsv(const Timeline& timeline, const Schedule& schedule, const Graph& graph);

}  // namespace dcsim
