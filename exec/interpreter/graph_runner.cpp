#include "exec/interpreter/graph_runner.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <c10/core/InferenceMode.h>

#include "exec/interpreter/argument_values.h"

namespace dcsim::exec {
namespace {

std::vector<OpId> AllOps(const Graph& graph) {
  std::vector<OpId> order;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    order.emplace_back(i);
  }
  return order;
}

}  // namespace

std::vector<at::Tensor> MakeConstants(const Graph& graph, c10::Device device) {
  std::vector<at::Tensor> constants;
  for (const ConstantBuffer& constant : graph.buffers) {
    const Value& value = graph.value(constant.value);
    const auto dtype = ToScalarType(value.dtype);
    std::string data = constant.data;  // from_blob takes memory that may be written
    constants.push_back(at::from_blob(data.data(), value.shape, at::TensorOptions(dtype))
                            .to(device, dtype, /*non_blocking=*/false, /*copy=*/true));
  }
  return constants;
}

GraphRunner::GraphRunner(const Graph& graph,
                         c10::Device device,
                         const std::vector<at::Tensor>& params,
                         const KernelBinaries* binaries)
    : graph_(graph),
      program_(graph, device, binaries),
      params_(params),
      facts_(AnalyseStep(graph)),
      dying_(graph.ops.size()),
      values_in_(graph.storages.size()),
      kept_(graph.storages.size()),
      gradient_(graph.storages.size()),
      constants_(MakeConstants(graph, device)),
      frame_(graph.values.size()) {
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    values_in_[graph.values[v].storage.index()].emplace_back(v);
  }
  for (const Subgraph& subgraph : graph.graphs) {
    for (const GraphOutput& output : subgraph.outputs) {
      const std::size_t storage = graph.storage_of(output.value).index();
      gradient_[storage] = gradient_[storage] || output.kind == GraphOutputKind::kGradient;
      kept_[storage] = kept_[storage] || output.kind == GraphOutputKind::kLoss;
    }
  }
  const auto uses = FindUses(graph, AllOps(graph));
  for (std::size_t s = 0; s < uses.size(); ++s) {
    if (uses[s].used && facts_.param_of[s].is_none() && !facts_.is_constant[s]) {
      dying_[uses[s].last].emplace_back(s);
    }
  }
}

void GraphRunner::Reset(const std::vector<at::Tensor>& inputs, double tangent) {
  for (at::Tensor& tensor : frame_) {
    tensor.reset();
  }
  for (std::size_t i = 0; i < params_.size(); ++i) {
    frame_[graph_.params[i].value.index()] = params_[i];
  }
  for (std::size_t i = 0; i < constants_.size(); ++i) {
    frame_[graph_.buffers[i].value.index()] = constants_[i];
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    frame_[graph_.inputs[i].value.index()] = inputs[i];
  }
  const ValueId loss = LossOf(graph_);
  for (const Subgraph& subgraph : graph_.graphs) {
    for (const GraphInput& input : subgraph.inputs) {
      if (input.kind == GraphInputKind::kTangent) {
        const Value& value = graph_.value(input.value);
        frame_[input.value.index()] =
            at::full(value.shape, input.of == loss ? tangent : 0.0,
                     at::TensorOptions(ToScalarType(value.dtype)).device(program_.device()));
      }
    }
  }
}

void GraphRunner::Drop(OpId id) {
  for (const StorageId storage : dying_[id.index()]) {
    if (!kept_[storage.index()]) {
      for (const ValueId value : values_in_[storage.index()]) {
        frame_[value.index()].reset();
      }
    }
  }
}

MicroStepResult GraphRunner::Run(const std::vector<at::Tensor>& inputs,
                                 double tangent,
                                 bool keep_gradients) {
  const c10::InferenceMode inference;
  for (std::size_t s = 0; s < kept_.size(); ++s) {
    kept_[s] = gradient_[s] ? keep_gradients : kept_[s];
  }
  Reset(inputs, tangent);
  for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
    const OpId id(i);
    if (listener_ != nullptr) {
      listener_->BeforeOp(id);
    }
    program_.Run(id, frame_);
    if (listener_ != nullptr) {
      listener_->AfterOp(id, frame_);
    }
    Drop(id);
  }
  MicroStepResult result;
  result.gradients.resize(graph_.params.size());
  for (const Subgraph& subgraph : graph_.graphs) {
    for (const GraphOutput& output : subgraph.outputs) {
      if (output.kind == GraphOutputKind::kLoss) {
        result.loss = frame_[output.value.index()];
      } else if (output.kind == GraphOutputKind::kGradient) {
        result.gradients[output.param.index()] = frame_[output.value.index()];
      }
    }
  }
  return result;
}

}  // namespace dcsim::exec
