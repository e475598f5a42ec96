#include "tests/exec/support/exact_adamw.h"

#include <cmath>

#include <ATen/ops/zeros_like.h>

namespace dcsim::exec {

ExactAdamW::ExactAdamW(const at::Tensor& weights)
    : weights_(weights.to(at::kDouble)),
      first_(at::zeros_like(weights_)),
      second_(at::zeros_like(weights_)) {}

void ExactAdamW::Step(const at::Tensor& gradient, int count) {
  const at::Tensor g = gradient.to(at::kDouble);
  first_ = first_.mul(0.9).add(g.mul(0.1));
  second_ = second_.mul(0.95).add(g.square().mul(0.05));
  const at::Tensor first = first_.div(1 - std::pow(0.9, count));
  const at::Tensor second = second_.div(1 - std::pow(0.95, count));
  weights_ = weights_.mul(1 - 1e-4 * 0.1).sub(first.div(second.sqrt().add(1e-8)).mul(1e-4));
}

}  // namespace dcsim::exec
