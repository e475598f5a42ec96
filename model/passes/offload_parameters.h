#pragma once

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// ZeRO-3's shards live in pinned host memory: each comes to the GPU for a gather and leaves with
/// the parameter's release. Where a plan says when everything happens, all shards that a graph
/// gathers come as it begins, in the order of its inputs (offload_parameter_fwd in DeepSpeed's
/// passes/offload_parameters.py, which puts each reload behind the parameter's placeholder); else
/// each gather fetches its own.
void OffloadParameters(const Graph& graph, Plan& plan);

}  // namespace dcsim
