#pragma once

#include "model/ir/document.h"

namespace dcsim {

/// A dc-graph/1 document with every kind of entry and without a fault, for tests that break one
/// rule of it. As graph text it reads:
///
///   param w bfloat16[2,3]                            # value 0, storage 0, 12 B
///   param f bfloat16[3] frozen                       # value 1, storage 1, 6 B
///   buffer one int64[1]                              # value 2, storage 2, 8 B
///   input ids int64[2]                               # value 3, storage 3, 16 B
///   input x bfloat16[2,3]                            # value 4, storage 4, 12 B
///   forward
///     v: bfloat16[3,2] views w = aten::t(w)          # value 5, storage 0, strides 1 and 3
///     a: bfloat16[2,2] = aten::mm(x, v)              # value 6, storage 5, 8 B
///     l: bfloat16[], _ = my::loss(a, f, ids, one)    # value 7, storage 6, 2 B
///     loss l
///     output a as logits held
///     save a
///   backward
///     tangent t: bfloat16[] of l                     # value 8, storage 7, 2 B
///     g: bfloat16[2,3] = my::grad(a, t) recompute    # value 9, storage 8, 12 B
///     gradient w = g
Json ValidGraph();

}  // namespace dcsim
