#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "exec/interpreter/op_program.h"
#include "model/graph/step_facts.h"
#include "model/ir/graph.h"

namespace dcsim::exec {

/// Told about every op of a run; the profiler listens.
class OpListener {
 public:
  OpListener() = default;
  OpListener(const OpListener&) = delete;
  OpListener& operator=(const OpListener&) = delete;
  virtual ~OpListener() = default;

  virtual void BeforeOp(OpId) {}
  /// The outputs are in the frame, the dying inputs not dropped yet.
  virtual void AfterOp(OpId, const Frame&) {}
};

/// What one micro-step computed. `gradients` by ParamId, undefined where there is none.
struct MicroStepResult {
  at::Tensor loss;
  std::vector<at::Tensor> gradients;
};

/// Runs a recorded graph whole on one device: every op in recorded order, each storage dropped
/// after the last op that uses it. No schedule, no sharding.
class GraphRunner {
 public:
  /// `params` by ParamId, whole, on the device; they stay the caller's and may change between runs.
  /// `binaries` as OpProgram.
  GraphRunner(const Graph& graph,
              c10::Device device,
              const std::vector<at::Tensor>& params,
              const KernelBinaries* binaries = nullptr);

  /// One micro-step on these inputs (by position in Graph::inputs).
  ///
  ///   tangent         gradient of the loss: 1 / micro-steps; those of held outputs are zero
  ///   keep_gradients  false drops each gradient when its op is done, as a step that reduces at
  ///   once
  MicroStepResult Run(const std::vector<at::Tensor>& inputs, double tangent, bool keep_gradients);

  void Listen(OpListener* listener) { listener_ = listener; }

 private:
  void Reset(const std::vector<at::Tensor>& inputs, double tangent);
  void Drop(OpId id);

  const Graph& graph_;
  OpProgram program_;
  const std::vector<at::Tensor>& params_;
  StepFacts facts_;
  std::vector<std::vector<StorageId>> dying_;    // by op
  std::vector<std::vector<ValueId>> values_in_;  // by storage
  std::vector<bool> kept_;                       // by storage: of the loss, or of a gradient
  std::vector<bool> gradient_;                   // by storage
  std::vector<at::Tensor> constants_;            // by position in Graph::buffers
  Frame frame_;
  OpListener* listener_ = nullptr;
};

/// The constants of a graph on a device, by position in Graph::buffers.
std::vector<at::Tensor> MakeConstants(const Graph& graph, c10::Device device);

}  // namespace dcsim::exec
