#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "exec/interpreter/graph_runner.h"
#include "exec/reference/reference_file.h"
#include "model/ir/graph.h"

namespace dcsim::exec {

/// The reference training in C++, whole on one device: the recorded graph through the dispatcher,
/// the ranks' micro-steps one after the other, gradients averaged in float32, AdamW.
class ReferenceTraining {
 public:
  /// Seed, ranks and accumulation are those of `reference`; `device` is "cpu" or "cuda". Turns
  /// deterministic kernels on for the whole process, as the reference was made with. `binaries` as
  /// OpProgram.
  ReferenceTraining(const Graph& graph,
                    const Reference& reference,
                    const std::string& device,
                    const KernelBinaries* binaries = nullptr);

  struct Step {
    std::vector<std::vector<double>> losses;  // [rank][micro-step]
    std::vector<at::Tensor> gradients;        // by ParamId, float32; undefined without one
  };
  /// Step number `step`, from 0. `update` false leaves the weights as they are, which saves the
  /// optimizer's memory.
  Step Run(int step, bool update);

 private:
  void Update(const std::vector<at::Tensor>& gradients, int count);

  const Graph& graph_;
  const Reference& reference_;
  c10::Device device_;
  std::vector<at::Tensor> params_;
  GraphRunner runner_;
  std::vector<at::Tensor> masters_;  // by ParamId; empty until the first update
  std::vector<at::Tensor> first_moments_;
  std::vector<at::Tensor> second_moments_;
};

/// The parameter whose gradient differs most from the reference, and how losses compare.
struct StepComparison {
  double largest_loss_error = 0;      // relative
  double largest_gradient_error = 0;  // relative, estimated from projections
  ParamId worst;                      // None() when all hashes are equal
  std::size_t equal_gradients = 0;    // bit for bit
  std::size_t gradients = 0;
};

StepComparison CompareStep(const Graph& graph,
                           const ReferenceStep& expected,
                           const ReferenceTraining::Step& actual,
                           std::uint64_t seed);

}  // namespace dcsim::exec
