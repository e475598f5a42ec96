#pragma once

#include <cstdint>
#include <vector>

#include "model/ir/graph.h"

namespace dcsim {

/// How an op that makes each element of its result from one of each operand goes through memory:
/// in whole vectors, or element by element for one reason or another (ElementRates).
enum class ElementAccess : std::uint8_t {
  kPlain,       // dense tensors of one layout and dtype, or written in a shorter one
  kAlike,       // an operand has another layout, or a shorter dtype
  kBroadcast,   // an operand is broadcast or has holes
  kPermuted,    // several whole operands of different layouts
  kConverted,   // several operands of different dtypes
  kTransposed,  // neighbours in the result are no neighbours in an operand
};

/// Of a copy of a tensor into a contiguous one.
ElementAccess CopyAccess(const Value& value);

/// Of an elementwise op with a result. Numbers of the host and the targets of a loss count as no
/// operands; a tensor of one element is broadcast.
ElementAccess AccessOf(const std::vector<const Value*>& inputs, const Value& result);

/// Whether a tensor of two dimensions or more has its channels (the second one) last, and nothing
/// between places or images: what PyTorch calls channels_last.
bool IsDenseChannelsLast(const Value& value);

}  // namespace dcsim
