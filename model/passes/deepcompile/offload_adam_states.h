#pragma once

#include <cstddef>
#include <vector>

#include "model/base/units.h"
#include "model/passes/deepcompile/pass_graph.h"

namespace dcsim {

/// A step of a graph and the highest memory while it runs, as DeepSpeed's profile has it.
struct StepPeak {
  PassNodeKind kind = PassNodeKind::kOp;
  Bytes peak;
};

/// States that come back behind a step of a backward graph.
struct ReloadPlace {
  std::size_t step = 0;  // behind which; the number of steps: before the graph returns
  std::size_t state = 0;

  bool operator==(const ReloadPlace&) const = default;
};

/// The pass "offload_adam_states" (offload_opt_states_inc in passes/offload_adam_states.py), asked
/// about one graph after the other in the order of execution. States leave in the order in which
/// they are given until a forward graph fits in 80 % of the device, and come back in that order as
/// soon as what follows in a backward graph leaves room for them.
class StateOffload {
 public:
  /// `sizes`: of the states, by index: exp_avg, exp_avg_sq and hp_param of each partition.
  StateOffload(std::vector<Bytes> sizes, Bytes device_memory);

  /// States that leave before the first op of a forward graph, by index. Peaks are those without
  /// any state on the device.
  std::vector<std::size_t> Forward(const std::vector<StepPeak>& steps);

  /// States that come back in a backward graph.
  ///
  ///   last   no backward graph follows: what is still away comes back before it returns
  std::vector<ReloadPlace> Backward(const std::vector<StepPeak>& steps, bool last);

 private:
  std::vector<Bytes> sizes_;
  double budget_;              // bytes; DeepSpeed compares in floating point
  std::size_t leaving_ = 0;    // states [0, leaving_) leave
  std::size_t returning_ = 0;  // states [0, returning_) have come back
  Bytes reloaded_;
};

}  // namespace dcsim
