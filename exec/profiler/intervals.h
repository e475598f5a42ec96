#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/base/units.h"

namespace dcsim::exec {

/// Sorted, disjoint intervals of time, ns.
using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// The union of intervals, and the length of what `a` covers and `b` does not.
Intervals Union(Intervals intervals);
Duration LengthOutside(const Intervals& a, const Intervals& b);
Duration Length(const Intervals& intervals);

}  // namespace dcsim::exec
