#pragma once

#include <string>

#include "model/ir/graph.h"

namespace dcsim {

/// One op that makes a [2,5] of x [2,3], w [3,5], bias [5] and matrix [2,5], and behind it a sum.
///
///   op   such as "aten::addmm(bias, x, w)"
Graph ProductGraph(const std::string& op);

}  // namespace dcsim
