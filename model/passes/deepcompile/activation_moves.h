#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/passes/deepcompile/memory_profile.h"
#include "model/passes/deepcompile/offload_activation.h"
#include "model/passes/deepcompile/pass_graph.h"
#include "model/passes/deepcompile/prefetch.h"
#include "model/passes/policy_inputs.h"

namespace dcsim {

/// A recorded forward graph as the passes see it: `nodes` as BuildPassGraph makes them.
ActivationGraph DescribeActivations(const Graph& graph,
                                    std::size_t g,
                                    const PassGraph& nodes,
                                    DeepSpeedVersion version);

/// A graph behind insertion and list scheduling.
struct ScheduledGraph {
  PassGraph nodes;
  std::vector<PassStep> steps;  // one a node
};

/// When saved activations leave and come back in each graph of a step, by the passes
/// offload_activation_floor and offload_activation, where the spec's passes name them.
///
/// All that may leave does; the planner then keeps what fits in 90 % of the device above the
/// highest memory with all of them away. DeepSpeed reads that from the allocator in step 5; here it
/// is what the profiler would see, and the reduce buckets.
///
///   graphs   by graph of the step
std::vector<std::vector<ActivationStep>> PlanActivations(const PlanSpec& spec,
                                                         const Graph& graph,
                                                         const PolicyInputs& inputs,
                                                         const MemoryProfile& memory,
                                                         const std::vector<ScheduledGraph>& graphs,
                                                         DeepSpeedVersion version);

}  // namespace dcsim
