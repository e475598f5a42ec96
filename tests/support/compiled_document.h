#pragma once

#include "model/ir/document.h"
#include "model/ir/graph.h"

namespace dcsim {

/// A compiled form for ZeRO-3 of one product with a loss, in float32:
///
///   forward   y = mm(x, w), in storage 2; `relu` works on it in place: z; `total` sums it: the
///   loss backward  `slope` overwrites z with the gradient of w
///
/// w, x [4,4] 64 B, values 0 and 1; y, z and the gradient values 2, 3 and 6, loss 4, tangent 5.
Json CompiledDocument();

/// The graph of it.
Graph CompiledGraph();

}  // namespace dcsim
