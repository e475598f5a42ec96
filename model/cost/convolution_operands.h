#pragma once

#include <cstdint>

#include "model/cost/kernel_traits.h"

namespace dcsim {

/// One, in seconds: the unit of what a thread takes for a step.
inline constexpr double kPicosecond = 1e-12;

/// The tensors of a convolution or its backward, which has the result's gradient first.
struct ConvolutionOperands {
  bool backward = false;
  const Value* input = nullptr;
  const Value* weight = nullptr;
  const Value* result = nullptr;  // or its gradient
  bool bias = false;              // is added; backward: its gradient is made
};

/// Of a convolution with as many operands.
ConvolutionOperands OperandsOf(const KernelTraits& of);

/// Elements of one channel of one image.
std::int64_t PlacesOf(const Value& value);

}  // namespace dcsim
