#pragma once

#include "model/ir/graph_text.h"

namespace dcsim {

/// A bias of four elements, 8 bytes, shifts the weights behind it. Op 0 reads the bias, op 1 both
/// weights, op 2 no parameter.
inline Graph BiasAndWeights() {
  return ParseGraphText(R"(
graph shifted 1 tokens
param b bfloat16[4]
param v bfloat16[6]
param w bfloat16[16]
input x bfloat16[16]
forward
  a: bfloat16[16] = my::op(x, b)
  c: bfloat16[16] = my::op(a, v, w)
  l: float32[] = my::loss(c)
  loss l
)");
}

}  // namespace dcsim
