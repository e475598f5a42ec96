#include "exec/profiler/sign_descent.h"

namespace dcsim::exec {

SignDescent::SignDescent(const Graph& graph,
                         const std::vector<at::Tensor>& params,
                         double learning_rate)
    : params_(params),
      learning_rate_(learning_rate),
      made_by_(graph.ops.size()) {
  std::vector<ParamId> gradient_of(graph.values.size(), ParamId::None());
  for (const Subgraph& subgraph : graph.graphs) {
    for (const GraphOutput& output : subgraph.outputs) {
      if (output.kind == GraphOutputKind::kGradient) {
        gradient_of[output.value.index()] = output.param;
      }
    }
  }
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    for (const ValueId output : graph.ops[op].outputs) {
      if (!output.is_none() && !gradient_of[output.index()].is_none()) {
        made_by_[op].push_back({gradient_of[output.index()], output});
      }
    }
  }
}

void SignDescent::AfterOp(OpId id, const Frame& frame) {
  for (const Gradient& gradient : made_by_[id.index()]) {
    params_[gradient.param.index()].sub_(frame[gradient.value.index()].sign(), learning_rate_);
  }
}

}  // namespace dcsim::exec
