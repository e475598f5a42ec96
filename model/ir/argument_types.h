#pragma once

#include <string_view>

#include "model/ir/graph.h"

namespace dcsim {

/// Whether an argument may stand where a schema says `type` ("Tensor?", "int[]", "ScalarType?", …).
/// A number may stand for a tensor: PyTorch's wrapped number.
bool FitsType(const Argument& argument, std::string_view type);

}  // namespace dcsim
