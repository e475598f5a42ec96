#include "model/cost/convolution_operands.h"

#include <algorithm>

namespace dcsim {

ConvolutionOperands OperandsOf(const KernelTraits& of) {
  if (of.backward) {
    const bool bias = of.outputs.size() > 2 && of.outputs[2] != nullptr;
    return {true, of.inputs[1], of.inputs[2], of.inputs[0], bias};
  }
  return {false, of.inputs[0], of.inputs[1], of.result, of.inputs.size() > 2};
}

std::int64_t PlacesOf(const Value& value) {
  return value.numel() / std::max<std::int64_t>(1, value.shape[0] * value.shape[1]);
}

}  // namespace dcsim
