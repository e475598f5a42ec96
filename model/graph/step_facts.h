#pragma once

#include <vector>

#include "model/ir/graph.h"

namespace dcsim {

/// What follows from a recorded graph alone and is asked again and again.
struct StepFacts {
  std::vector<bool> is_view;      // by op: all outputs alias inputs, no kernel runs
  std::vector<OpId> producer;     // by storage: the op that allocates it, None() for residents,
                                  // tangents
  std::vector<ParamId> param_of;  // by storage: the parameter that lives in it, or None()
  std::vector<bool> is_constant;  // by storage: of a buffer or an input of the step
  std::vector<bool> on_host;      // by storage: in the host's memory, whatever the op runs on
  std::vector<std::vector<StorageId>>
      allocates;  // by op: the GPU's storages that it brings to life
};

StepFacts AnalyseStep(const Graph& graph);

/// Whether an output of an op is a tensor of the host: the random seed and offset that
/// memory-efficient attention saves outside of CUDA graphs (PyTorch, attention.cu: Note [Seed and
/// Offset Device]).
bool IsMadeOnHost(const Graph& graph, OpId id, std::size_t output);

/// The value that the step differentiates, or None() for a graph without a loss.
ValueId LossOf(const Graph& graph);

/// By value: the parameter whose gradient it is, or None().
std::vector<ParamId> ParamsWithGradients(const Graph& graph);

/// Positions in one graph's order where a storage is first and last touched by an op.
struct UseSpan {
  std::size_t first = 0;
  std::size_t last = 0;
  bool used = false;
};

/// By storage: the span of its uses as an input or output of ops, when the graph's ops run in
/// `order`.
std::vector<UseSpan> FindUses(const Graph& graph, const std::vector<OpId>& order);

}  // namespace dcsim
