#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/cost/memory_load.h"
#include "model/machine/contention.h"

namespace dcsim::exec {

/// One op to run again and again on the current GPU while other streams are busy.
struct ComputeKernel {
  std::string name;  // op and shapes, for people
  DeviceUse use = DeviceUse::kMatmul;
  std::int64_t output_elements = 0;
  MovedBytes moved;           // of streaming kernels
  std::function<void()> run;  // on the current stream
};

/// Ops as training runs them, of sizes of no particular model: products of one to sixteen waves of
/// tiles, fused attention forward and backward, elementwise ops and reductions of 1 to 256 MiB.
std::vector<ComputeKernel> ComputeKernels();

}  // namespace dcsim::exec
