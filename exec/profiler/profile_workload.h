#pragma once

#include <functional>
#include <string>

#include "exec/interpreter/kernel_binaries.h"
#include "model/ir/graph.h"
#include "model/ir/profile.h"

namespace dcsim::exec {

/// How a workload is profiled.
struct ProfileSettings {
  int warmup_steps = 3;
  int trained_steps = 10;  // before everything that is measured
  double learning_rate = 1e-4;
  int steps = 10;  // with kernel records; also of the host's and of the undisturbed step's time
  std::uint64_t seed = 0;
  const KernelBinaries* binaries = nullptr;  // of a compiled graph
  std::function<void(const std::string&)> report = [](const std::string&) {
  };  // progress, a line each
};

/// Runs forward and backward of a workload on the current GPU with the reference training's
/// weights, again and again, and measures what each op costs inside the running step: GPU time and
/// kernels (CUPTI), host time of the call (the GPU kept short of work, so that the launch queue
/// never blocks), and the op's calls of the caching allocator. No optimizer, so that an 8B model
/// fits one GPU: weights take `trained_steps` steps by their gradients' signs on other inputs each,
/// since routers of experts prefer some as soon as they are trained, and stay as they are then.
/// Recorded and timed steps follow each other without a pause, behind a second of
/// others: the GPU then has the clock that its power limit leaves it in training.
///
/// Where some parameters are at no multiple of 16 bytes in ZeRO-1 and 2, the same is measured once
/// more with all of them side by side, of the ops that read those (`Profile::side_by_side`).
///
/// `Profile::kernel_gap` is what a kernel costs beyond its own time: (mean time of the undisturbed
/// steps - sum of kernel times) / kernels; where the host cannot keep up it is the median gap
/// between neighbouring kernels instead.
Profile ProfileWorkload(const Graph& graph, const ProfileSettings& settings);

}  // namespace dcsim::exec
