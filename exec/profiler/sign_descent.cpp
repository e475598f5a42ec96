#include "exec/profiler/sign_descent.h"

#include "model/graph/step_facts.h"

namespace dcsim::exec {

SignDescent::SignDescent(const Graph& graph,
                         const std::vector<at::Tensor>& params,
                         double learning_rate)
    : graph_(graph),
      params_(params),
      learning_rate_(learning_rate),
      param_with_gradient_(ParamsWithGradients(graph)) {}

void SignDescent::AfterOp(OpId id, const Frame& frame) {
  for (const ValueId output : graph_.op(id).outputs) {
    const ParamId param = output.is_none() ? ParamId::None() : param_with_gradient_[output.index()];
    if (!param.is_none()) {
      params_[param.index()].sub_(frame[output.index()].sign(), learning_rate_);
    }
  }
}

}  // namespace dcsim::exec
