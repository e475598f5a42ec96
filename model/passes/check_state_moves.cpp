#include "model/passes/check_state_moves.h"

#include <algorithm>

#include "model/graph/sharding.h"
#include "model/ir/optimizer_spec.h"

namespace dcsim {
namespace {

std::string NameOf(const OptimizerState& state) {
  return std::string(OptimizerTensorNames()[static_cast<std::size_t>(state.tensor)]) + " of " +
         std::string(DTypeName(state.dtype)) + " parameters";
}

/// Follows the states through one micro-step; a step begins and ends with all of them on the GPU.
class Follower {
 public:
  Follower(const Plan& plan, const Graph& graph, std::vector<std::string>& faults)
      : algorithm_(plan.options.training.algorithm),
        states_(StatesOf(graph, plan.options, plan.ranks)),
        faults_(faults) {}

  void Follow(const StateMove& move) {
    for (const OptimizerState& state : move.states) {
      if (!Keeps(algorithm_, state.tensor)) {
        faults_.push_back(std::string(OptimizerAlgorithmName(algorithm_)) + " keeps no " +
                          NameOf(state));
      } else if (!Exists(state)) {
        faults_.push_back("there is no " + NameOf(state) + " with a gradient");
      } else if (move.kind == StateMoveKind::kOffload) {
        Leave(state);
      } else if (move.kind == StateMoveKind::kReload) {
        Return(state);
      } else {
        faults_.push_back("a synchronization names no states, found " + NameOf(state));
      }
    }
  }

  void Finish() {
    for (const OptimizerState& state : away_) {
      faults_.push_back(NameOf(state) + ": offloaded and not reloaded before the optimizer step");
    }
  }

 private:
  bool Exists(const OptimizerState& state) const {
    return std::any_of(states_.begin(), states_.end(),
                       [&](const StateSize& each) { return each.state == state; });
  }

  void Leave(const OptimizerState& state) {
    if (std::find(left_.begin(), left_.end(), state) != left_.end()) {
      faults_.push_back(NameOf(state) + ": offloaded a second time");
      return;
    }
    left_.push_back(state);
    away_.push_back(state);
  }

  void Return(const OptimizerState& state) {
    const auto found = std::find(away_.begin(), away_.end(), state);
    if (found == away_.end()) {
      faults_.push_back(NameOf(state) + ": reloaded and not offloaded before");
      return;
    }
    away_.erase(found);
  }

  OptimizerAlgorithm algorithm_;
  std::vector<StateSize> states_;
  std::vector<std::string>& faults_;
  std::vector<OptimizerState> left_;  // so far, back again or not
  std::vector<OptimizerState> away_;
};

}  // namespace

void CheckStateMoves(const Plan& plan, const Graph& graph, std::vector<std::string>& faults) {
  Follower follower(plan, graph, faults);
  for (const GraphPlan& decisions : plan.graphs) {
    std::size_t before = 0;
    for (const StateMove& move : decisions.state_moves) {
      if (move.position < before || move.position > decisions.order.size() + 1) {
        faults.push_back("positions of state moves must ascend and stay within the graph, found " +
                         std::to_string(move.position));
      }
      before = std::max(before, move.position);
      follower.Follow(move);
    }
  }
  follower.Finish();
}

}  // namespace dcsim
