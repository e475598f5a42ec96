#pragma once

#include <cstdint>
#include <vector>

#include "model/base/units.h"
#include "model/ir/plan.h"
#include "model/passes/deepcompile/gather_scheduler.h"
#include "model/passes/deepcompile/pass_graph.h"

namespace dcsim {

/// What the pass knows of a node's result.
struct NodeTensor {
  bool known = false;     // a tensor, and DeepSpeed has its shape; behind a release it does not
  bool floating = false;  // of floating-point numbers
  bool overlaps = false;  // elements share places in memory, as behind expand
  bool aliases = false;   // shares the storage of its first tensor argument
  bool param = false;     // a parameter's placeholder
  Bytes bytes;            // of its elements
};

/// A forward graph as the pass sees it.
struct ActivationGraph {
  std::vector<NodeTensor> tensors;      // by node
  std::vector<std::uint32_t> returned;  // nodes that the caller gets, in the order of the outputs
  std::vector<std::uint32_t> saved;     // nodes that the backward gets
};

/// A saved activation that spends its time between forward and backward on the host.
struct MovedActivation {
  std::uint32_t node = 0;
  Bytes copied;    // its elements
  Bytes resident;  // that stay taken while it is on the device: 0.19.8 counts a view's whole base

  bool operator==(const MovedActivation&) const = default;
};

/// The pass "offload_activation_floor" (_eligible_activations in passes/offload_activation.py):
/// every saved activation of at least 5 MiB that may leave, largest first.
std::vector<MovedActivation> FindMovable(const PassGraph& graph,
                                         const ActivationGraph& activations,
                                         DeepSpeedVersion version);

/// The pass "offload_activation" (_plan_against_floor_fwd): what still leaves when all has stayed
/// that fits into the headroom, largest first.
///
///   headroom   bytes between the peak with all of them away and the budget
std::vector<MovedActivation> KeepFitting(const std::vector<MovedActivation>& moved,
                                         double headroom);

/// An event of an activation, right before a place in a scheduled order.
struct ActivationStep {
  std::size_t before = 0;
  GraphEventKind kind = GraphEventKind::kOffloadActivation;
  std::uint32_t node = 0;  // whose result it is; in the backward its placeholder

  bool operator==(const ActivationStep&) const = default;
};

/// Where they leave: behind the last node that has them as an argument, of several the largest
/// last (_offload_everything_fwd).
std::vector<ActivationStep> PlaceOffloads(const PassGraph& graph,
                                          const std::vector<std::uint32_t>& order,
                                          const std::vector<MovedActivation>& moved);

/// What the backward half knows besides the graph.
struct ReloadInputs {
  std::vector<double> milliseconds;  // by place in the order: device time
  std::vector<double> peaks;         // by place: bytes; empty: there is no profile
  double budget = 0;                 // bytes
  double bytes_per_second = 0;       // from pinned memory
};

/// Where they come back (_reload_activation_bwd): the copy as far ahead of the first use as its own
/// time takes, while peaks, what has come back and itself fit into the budget; without a profile
/// right before it. Compute waits there.
///
///   moved   placeholders of the backward graph, in the order of the forward half's plan
std::vector<ActivationStep> PlaceReloads(const PassGraph& graph,
                                         const std::vector<std::uint32_t>& order,
                                         const std::vector<MovedActivation>& moved,
                                         const ReloadInputs& inputs);

}  // namespace dcsim
