#pragma once

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// Policy deepspeed-eager: DeepSpeed without DeepCompile (0.19.8), ops in recorded order.
///
/// ZeRO-3: the parameters that one module's ops use are gathered in one group when the first of
/// them runs, and the compute stream waits; then the next modules' parameters follow in another
/// group, while it holds fewer than `prefetch_bucket` elements and no more than `max_live` would be
/// alive. Behind a module's last op its parameters are released, unless they have at most
/// `persistence_threshold` elements (those stay gathered) or are used again within the next
/// `max_reuse_distance` elements of modules. A parameter is gathered at most once a graph, where
/// DeepSpeed gathers one that two modules share once for each.
/// Gradients: see GradientBuckets::kEager (lower_eager.cpp).
///
///   spec   with eager gradient buckets; options agree (Resolve checks them)
Plan ResolveEager(const PlanSpec& spec, const Graph& graph, int ranks);

}  // namespace dcsim
