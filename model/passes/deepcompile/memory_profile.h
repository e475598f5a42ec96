#pragma once

#include <vector>

#include "model/graph/step_facts.h"
#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/passes/deepcompile/offload_activation.h"
#include "model/passes/deepcompile/pass_graph.h"
#include "model/passes/deepcompile/prefetch.h"
#include "model/passes/policy_inputs.h"

namespace dcsim {

/// Activations that are away from the device, and moves of them in one graph.
struct AwayActivations {
  std::vector<ValueId> before;        // on the host when the graph begins
  std::vector<ActivationStep> moves;  // of the graph, ascending; waits do nothing
};

/// What `bytes` take of PyTorch's allocator, whose blocks are multiples of 512 bytes.
inline Bytes InBlocks(Bytes bytes) {
  return Bytes(RoundUp(bytes.count(), 512));
}

/// The memory that DeepCompile's profilers see, predicted: in program order on one stream,
/// PyTorch's blocks rounded to 512 bytes, memory outside PyTorch included. Reductions do nothing
/// while it profiles, so reduce buckets are missing and gradients go where they would be reduced;
/// inputs of a graph stay for all of it.
class MemoryProfile {
 public:
  /// What else than the graph says how much outlives steps.
  struct Residents {
    bool shards = true;  // on the device
    TrainingOptions training;
  };

  /// For ZeRO-3 on `ranks` GPUs. Graph and inputs have to outlive this.
  MemoryProfile(const Graph& graph,
                const PolicyInputs& inputs,
                int ranks,
                const Residents& residents = {true, {}});

  /// Highest memory while the ops of graph `g` run in recorded order (ProfilingInterpreter), each
  /// with its own parameters gathered; a gather holds its parameter twice.
  Bytes OperatorPeak(std::size_t g, const PassGraph& nodes) const;

  /// By step: highest memory while it runs (MemoryProfilingInterpreter): gathered parameters are
  /// alive from their gather to their last release.
  std::vector<Bytes> Peaks(std::size_t g,
                           const PassGraph& nodes,
                           const std::vector<PassStep>& steps,
                           const AwayActivations& away = {}) const;

  /// Memory before graph `g` runs: what outlives steps, what earlier graphs left for later ones,
  /// outputs that the caller holds.
  Bytes Before(std::size_t g) const;

 private:
  struct OpMemory {
    Bytes peak;  // above what was there before
    Bytes made;  // of new storages
  };
  struct Walk;
  struct GatheredParams;

  OpMemory MemoryOf(OpId id) const;
  Walk StartWalk(std::size_t g, const std::vector<OpId>& order) const;
  void FinishOp(Walk& walk, OpId id) const;
  void FinishReduction(Walk& walk, ParamId param) const;
  Bytes OwnParams(OpId id) const;
  void Move(Walk& walk, const ActivationStep& move, const PassGraph& nodes) const;
  /// Goes on by a node; returns the highest memory while it ran.
  Bytes RunNode(Walk& walk, GatheredParams& gathered, const PassNode& node) const;

  const Graph& graph_;
  const PolicyInputs& inputs_;
  int ranks_;
  StepFacts facts_;
  Bytes resident_;
};

}  // namespace dcsim
