#pragma once

#include <vector>

#include "model/passes/lower_state.h"

namespace dcsim {

/// When things happen in one graph: fixed by the plan's order, the same for every micro-step.
struct GraphMoments {
  std::vector<std::vector<ParamId>> first_uses;  // by position: parameters used from here on
  std::vector<std::vector<ParamId>> last_uses;   // by position: … for the last time
  std::vector<std::vector<StorageId>> dying;     // by position: no op uses them any more
  std::vector<std::vector<const GraphOutput*>> gradients;  // by position: complete after it
  std::vector<const GraphOutput*> early_gradients;         // that no op of this graph makes
};

/// Outputs that the caller keeps: the loss, and those marked as held.
inline bool IsHeld(const GraphOutput& output) {
  return output.kind == GraphOutputKind::kLoss ||
         (output.kind == GraphOutputKind::kOutput && output.held);
}

/// The moments of every graph. Storages die after their last use in the last graph that uses them.
std::vector<GraphMoments> FindMoments(const LowerState& state);

}  // namespace dcsim
