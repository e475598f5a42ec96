#pragma once

#include "model/ir/graph.h"
#include "model/ir/profile.h"

namespace dcsim {

/// What a profile of a workload's graph of operators says of a compiled form of it: a call of an
/// operator takes as long as one of the same operator there whose tensors have the same dtypes,
/// shapes and strides. Other ops are not in it.
Profile BorrowProfile(const Profile& measured, const Graph& graph, const Graph& compiled);

}  // namespace dcsim
