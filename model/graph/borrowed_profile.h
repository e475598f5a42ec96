#pragma once

#include "model/ir/profile.h"

namespace dcsim {

/// What a profile of a workload's graph of operators says of a compiled form of it: a call of an
/// operator takes as long as one of the same operator there whose tensors have the same dtypes,
/// shapes and strides. Other ops are not in it, but in its `borrowed_from`.
Profile BorrowProfile(ProfiledGraph measured, const Graph& compiled);

}  // namespace dcsim
