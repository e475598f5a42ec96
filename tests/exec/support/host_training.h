#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "exec/executor/step_executor.h"
#include "exec/reference/reference_training.h"
#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim::exec {

/// What the ranks of a job computed in one optimizer step, put together again.
struct TrainedStep {
  std::vector<std::vector<double>> losses;  // [rank][micro-step]
  std::vector<at::Tensor> gradients;        // by ParamId, whole, float32; undefined when frozen
  std::vector<at::Tensor> masters;          // the same: weights after the step
};

/// Who trains, and on what.
struct HostJob {
  const Graph& graph;
  const PlanSpec& spec;
  int ranks = 1;
  std::uint64_t seed = 0;
  std::function<void(Plan&)> change_plan = {};  // what no spec can ask for
};

/// Executes steps [0, steps) of a job on CPU tensors, a thread a rank.
std::vector<TrainedStep> TrainOnHost(const HostJob& job, int steps);

/// The reference training of the same job: the graph whole, on one device, which CheckTest
/// (tests/exec/dc_run) holds against PyTorch in Python bit for bit.
std::vector<ReferenceTraining::Step> TrainReference(const HostJob& job, int steps);

/// The reference training's weights of a parameter before the first step, flat.
at::Tensor WholeParam(const Graph& graph, ParamId id, std::uint64_t seed = 0);

/// Calls `run` for every rank on a thread of its own, with strict ops; what a rank throws stops the
/// others, and the first failure by rank is thrown again.
void RunRanks(int ranks, const std::function<void(Communicator&)>& run);

/// One thread an op: sums have one order wherever they are made, and ranks do not compete for the
/// machine. PyTorch's deterministic mode: new memory is filled with NaN, so that what nobody has
/// written shows when it is read.
void UseStrictOps();

}  // namespace dcsim::exec
