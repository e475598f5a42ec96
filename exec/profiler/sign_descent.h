#pragma once

#include <vector>

#include "exec/interpreter/graph_runner.h"

namespace dcsim::exec {

/// Trains while a graph runs, without states of an optimizer: as soon as an op has made a
/// parameter's gradient, every weight of it moves by the learning rate against the gradient's sign.
/// This is Adam's first step; its next ones are smaller where gradients change their signs. Ops of
/// the same backward that still read the parameter see it moved.
class SignDescent : public OpListener {
 public:
  /// `params` by ParamId, whole; they and the graph must outlive this.
  SignDescent(const Graph& graph, const std::vector<at::Tensor>& params, double learning_rate);

  void AfterOp(OpId id, const Frame& frame) override;

 private:
  const Graph& graph_;
  const std::vector<at::Tensor>& params_;
  double learning_rate_;
  std::vector<ParamId> param_with_gradient_;  // by value, or None()
};

}  // namespace dcsim::exec
