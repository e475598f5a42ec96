#pragma once

#include <vector>

#include "model/graph/sharding.h"
#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/passes/deepcompile/offload_adam_states.h"
#include "model/passes/deepcompile/prefetch.h"
#include "model/passes/policy_inputs.h"

namespace dcsim {

/// What DeepCompile's passes over optimizer states make of a step: offload_adam_states plans with
/// profiles that see no states (offload_adam_states_for_init); offload_adam_states_sync takes all
/// of them away before the first forward graph and brings them back behind the last backward graph,
/// each time waiting for the device. Without one of these passes nothing moves.
class StateMovePlanner {
 public:
  /// Everything passed has to outlive this.
  StateMovePlanner(const PlanSpec& spec, const Graph& graph, int ranks, const PolicyInputs& inputs);

  /// Bytes of the states that are on the host while the next graph is profiled.
  Bytes away() const { return away_; }

  /// Moves in recorded graph `g`, whose nodes are issued in the order of `steps`; graphs come in
  /// the order of execution. `peaks` by step, as profiled.
  std::vector<StateMove> Plan(std::size_t g,
                              const PassGraph& nodes,
                              const std::vector<PassStep>& steps,
                              const std::vector<Bytes>& peaks);

 private:
  enum class Pass : std::uint8_t { kNone, kPlanned, kSync };

  std::vector<StateMove> PlanSync(std::size_t g);
  Bytes BytesOf(std::size_t first_state) const;
  std::size_t LastBackward() const;

  const Graph& graph_;
  Pass pass_ = Pass::kNone;
  std::vector<StateSize> states_;
  StateOffload offload_;
  std::size_t leaving_ = 0;  // states [0, leaving_) leave
  Bytes away_;
};

}  // namespace dcsim
