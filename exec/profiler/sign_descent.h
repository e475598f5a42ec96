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
  /// `params` by ParamId, whole; they must outlive this.
  SignDescent(const Graph& graph, const std::vector<at::Tensor>& params, double learning_rate);

  void AfterOp(OpId id, const Frame& frame) override;

 private:
  struct Gradient {
    ParamId param;
    ValueId value;
  };

  const std::vector<at::Tensor>& params_;
  double learning_rate_;
  std::vector<std::vector<Gradient>> made_by_;  // by op
};

}  // namespace dcsim::exec
