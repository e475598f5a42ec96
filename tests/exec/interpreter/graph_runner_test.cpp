#include "exec/interpreter/graph_runner.h"

#include <map>

#include <gtest/gtest.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include "tests/exec/support/real_graph.h"

namespace dcsim::exec {
namespace {

/// The sum of the squares of x w, and its gradient x^T (2 x w).
Graph SumOfSquares() {
  return ParseRealGraph(R"(
graph squares 2 tokens
param w float32[2,2]
input x float32[2,2]
forward
  a: float32[2,2] = aten::mm(x, w)
  v: float32[2,2] views a = aten::t(a)
  b: float32[2,2] = aten::mul.Tensor(a, a)
  l: float32[] = aten::sum(b)
  loss l
  save v
backward of 0
  tangent t: float32[] of l
  g: float32[2,2] = aten::mul.Tensor(v, t)
  h: float32[2,2] = aten::add.Tensor(g, g)
  k: float32[2,2] views h = aten::t(h)
  y: float32[2,2] views x = aten::t(x)
  dw: float32[2,2] = aten::mm(y, k)
  gradient w = dw
)");
}

at::Tensor Square(std::initializer_list<float> elements) {
  return at::tensor(elements).view({2, 2});
}

class GraphRunnerTest : public testing::Test {
 protected:
  const Graph graph_ = SumOfSquares();
  // x w = [[1 5] [3 11]], whose squares sum to 156; x^T x w = [[10 38] [14 54]].
  const std::vector<at::Tensor> params_ = {Square({1, 1, 0, 2})};
  const std::vector<at::Tensor> inputs_ = {Square({1, 2, 3, 4})};
  GraphRunner runner_{graph_, c10::kCPU, params_};
};

TEST_F(GraphRunnerTest, ComputesLossAndGradients) {
  const MicroStepResult result = runner_.Run(inputs_, 1, /*keep_gradients=*/true);
  EXPECT_EQ(result.loss.item<double>(), 156);
  EXPECT_TRUE(at::equal(result.gradients[0], Square({20, 76, 28, 108}))) << result.gradients[0];
}

TEST_F(GraphRunnerTest, TangentScalesGradients) {
  const MicroStepResult result = runner_.Run(inputs_, 0.25, /*keep_gradients=*/true);
  EXPECT_EQ(result.loss.item<double>(), 156);
  EXPECT_TRUE(at::equal(result.gradients[0], Square({5, 19, 7, 27}))) << result.gradients[0];
}

TEST_F(GraphRunnerTest, RunsAgainOnChangedParams) {
  runner_.Run(inputs_, 1, /*keep_gradients=*/true);
  params_[0].mul_(2);
  EXPECT_EQ(runner_.Run(inputs_, 1, /*keep_gradients=*/true).loss.item<double>(), 4 * 156);
}

/// Names, before each op, of the values whose storages ops of this run made and that still live.
class LivingStorages : public OpListener {
 public:
  explicit LivingStorages(const Graph& graph) : graph_(graph) {}

  void BeforeOp(OpId) override { lines_ += Living() + "\n"; }
  void AfterOp(OpId id, const Frame& frame) override {
    for (const ValueId output : graph_.op(id).outputs) {
      const auto& storage = frame[output.index()].storage();
      made_.emplace(graph_.value(output).name, storage.getWeakStorageImpl());
    }
  }

  std::string Living() const {
    std::string living;
    for (const auto& [name, storage] : made_) {
      living += storage.expired() || name == "y" ? "" : name + " ";  // y is the input's
    }
    return living;
  }
  const std::string& lines() const { return lines_; }

 private:
  const Graph& graph_;
  std::map<std::string, c10::weak_intrusive_ptr<c10::StorageImpl>> made_;
  std::string lines_;
};

// v lies in a's storage, k in h's. b dies when it is summed, a with g's op, its last; the loss and
// the gradient are the caller's.
constexpr char kLiving[] =
    R"(
a 
a v 
a b v 
a l v 
g l 
h l 
h k l 
h k l 
)";

TEST_F(GraphRunnerTest, StoragesDieAtTheirLastUse) {
  LivingStorages living(graph_);
  runner_.Listen(&living);
  const MicroStepResult result = runner_.Run(inputs_, 1, /*keep_gradients=*/true);
  EXPECT_EQ(living.lines(), kLiving);
  EXPECT_EQ(living.Living(), "dw l ");
}

TEST_F(GraphRunnerTest, GradientsDieAtOnceWhenNobodyKeepsThem) {
  LivingStorages living(graph_);
  runner_.Listen(&living);
  const MicroStepResult result = runner_.Run(inputs_, 1, /*keep_gradients=*/false);
  EXPECT_FALSE(result.gradients[0].defined());
  EXPECT_EQ(living.Living(), "l ");
}

}  // namespace
}  // namespace dcsim::exec
