#pragma once

#include <cstdint>

#include "model/ir/graph.h"

namespace dcsim {

/// The tensors of a convolution or its backward, which has the result's gradient first.
struct ConvolutionOperands {
  bool backward = false;
  ValueId input;
  ValueId weight;
  ValueId result;     // or its gradient
  bool bias = false;  // is added; backward: its gradient is made
};

/// Of an op that IsPricedConvolution.
ConvolutionOperands OperandsOf(const Graph& graph, OpId id);

/// Elements of one channel of one image.
std::int64_t PlacesOf(const Value& value);

}  // namespace dcsim
