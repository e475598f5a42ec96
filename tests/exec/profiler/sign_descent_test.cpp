#include "exec/profiler/sign_descent.h"

#include <gtest/gtest.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include "tests/exec/support/real_graph.h"

namespace dcsim::exec {
namespace {

at::Tensor Square(std::initializer_list<float> elements) {
  return at::tensor(elements).view({2, 2});
}

/// The loss is the sum of x w, element by element, and of f: the gradient of w is x, and f is
/// frozen.
TEST(SignDescentTest, MovesEachWeightAgainstItsGradientsSign) {
  const Graph graph = ParseRealGraph(R"(
graph products 2 tokens
param w float32[2,2]
param f float32[2,2] frozen
input x float32[2,2]
forward
  a: float32[2,2] = aten::mul.Tensor(x, w)
  b: float32[2,2] = aten::add.Tensor(a, f)
  l: float32[] = aten::sum(b)
  loss l
backward of 0
  tangent t: float32[] of l
  dw: float32[2,2] = aten::mul.Tensor(x, t)
  gradient w = dw
)");
  const std::vector<at::Tensor> params = {Square({-1, 1, 0, 2}), Square({5, 6, 7, 8})};
  const std::vector<at::Tensor> inputs = {Square({-1, 2, -3, 4})};
  GraphRunner runner(graph, c10::kCPU, params);
  SignDescent descent(graph, params, 0.25);
  runner.Listen(&descent);
  runner.Run(inputs, 1, /*keep_gradients=*/false);
  EXPECT_TRUE(at::equal(params[0], Square({-0.75, 0.75, 0.25, 1.75}))) << params[0];
  EXPECT_TRUE(at::equal(params[1], Square({5, 6, 7, 8}))) << params[1];
}

}  // namespace
}  // namespace dcsim::exec
