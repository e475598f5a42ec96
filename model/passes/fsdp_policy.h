#pragma once

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// Policy fsdp: PyTorch's FSDP2 (torch 2.11, torch/distributed/fsdp/_fully_shard), ops in recorded
/// order, parameters in groups (FindParamGroups).
///
/// A group is gathered and waited for in front of its first op of the forward, and let go behind
/// its last one unless `reshard_after_forward` keeps it; the root's stays unless it says all. In
/// the backward each group's gather is issued as the group before it begins, the groups in the
/// reverse order in which the forward has left them; behind a group's last op it is let go, and its
/// gradients are reduced. The root's come last. Nothing is gathered ahead in the forward: the host
/// is ahead of the GPU there.
///
///   spec   with sharding fsdp2; options agree (Resolve checks them)
Plan ResolveFsdp(const PlanSpec& spec, const Graph& graph, int ranks);

}  // namespace dcsim
