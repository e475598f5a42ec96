#pragma once

#include <cstddef>
#include <optional>

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// Parameters that begin at no multiple of 16 bytes, for one of odd size lies in front of them.
struct ShiftedParams {
  ParamId first;            // of odd size
  std::size_t odd = 0;      // parameters (ZeRO-3: shards) that fill no multiple of 16 bytes
  std::size_t shifted = 0;  // parameters or shards that begin at none
};

/// What of a plan's flat weights `align_tensors` would put elsewhere; nothing when no parameter is
/// shifted or the plan has it already. Gradients behind them in a bucket are shifted, too.
std::optional<ShiftedParams> FindShiftedParams(const Plan& plan, const Graph& graph);

}  // namespace dcsim
