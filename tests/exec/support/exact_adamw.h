#pragma once

#include <ATen/core/Tensor.h>

namespace dcsim::exec {

/// AdamW as Loshchilov and Hutter state it (arXiv 1711.05101, algorithm 2), in float64, with the
/// reference training's constants.
class ExactAdamW {
 public:
  explicit ExactAdamW(const at::Tensor& weights);

  /// Step number `count`, from 1.
  void Step(const at::Tensor& gradient, int count);
  const at::Tensor& weights() const { return weights_; }

 private:
  at::Tensor weights_;
  at::Tensor first_;
  at::Tensor second_;
};

}  // namespace dcsim::exec
