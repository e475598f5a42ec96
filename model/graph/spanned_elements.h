#pragma once

#include <cstdint>

#include "model/ir/graph.h"

namespace dcsim {

/// Elements from the first of a tensor to its last, with those that lie between its own. Of a
/// tensor without elements it means nothing.
std::int64_t SpannedElements(const Value& value);

}  // namespace dcsim
