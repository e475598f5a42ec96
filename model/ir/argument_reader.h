#pragma once

#include "model/ir/document.h"
#include "model/ir/graph.h"

namespace dcsim {

/// Reads one argument of an op as docs/reference/formats.md writes it, with value ids below
/// `value_count`.
Argument ReadArgument(const Json& value, std::size_t value_count, const Path& path, Faults& faults);

/// The JSON form of an argument; the inverse of ReadArgument.
Json PrintArgument(const Argument& argument);

/// A value id below `value_count`, or None() after a fault.
ValueId ReadValueId(const Json& value, std::size_t value_count, const Path& path, Faults& faults);

}  // namespace dcsim
