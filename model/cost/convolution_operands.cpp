#include "model/cost/convolution_operands.h"

#include <algorithm>

namespace dcsim {

ConvolutionOperands OperandsOf(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  if (graph.target(id).ends_with("_backward")) {
    const bool bias = op.outputs.size() > 2 && !op.outputs[2].is_none();
    return {true, op.inputs[1], op.inputs[2], op.inputs[0], bias};
  }
  return {false, op.inputs[0], op.inputs[1], op.first_output(), op.inputs.size() > 2};
}

std::int64_t PlacesOf(const Value& value) {
  return value.numel() / std::max<std::int64_t>(1, value.shape[0] * value.shape[1]);
}

}  // namespace dcsim
