#pragma once

#include <vector>

#include "model/base/ids.h"
#include "model/base/units.h"
#include "model/passes/deepcompile/gather_scheduler.h"

namespace dcsim {

/// A parameter that might stay gathered: what its gathers take in all graphs, and its bytes.
struct KeepCandidate {
  ParamId param;
  Duration time;
  Bytes bytes;
};

/// Memory that decides how many parameters may stay, each of the GPU that has least.
struct KeepMemory {
  Bytes device;     // in total
  Bytes peak;       // highest profiled peak of all graphs, memory outside PyTorch included
  Bytes available;  // 0.19.8: free while the last backward graph is compiled
};

/// The pass "selective_gather": the parameters that stay gathered, in the order of their choice.
///
/// By time per byte, the most first, until one does not fit the budget: 90 % of the device less the
/// peak; in 0.19.8 also what is available less 10 % of the device. Source:
/// passes/selective_gather.py.
std::vector<ParamId> SelectKept(std::vector<KeepCandidate> candidates,
                                const KeepMemory& memory,
                                DeepSpeedVersion version);

}  // namespace dcsim
