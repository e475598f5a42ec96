#pragma once

#include <cstdint>
#include <vector>

namespace dcsim::exec {

/// The value that `percent` of the others do not exceed, the lower one where that falls between
/// two; 0 without values.
std::int64_t Percentile(std::vector<std::int64_t> values, int percent);

}  // namespace dcsim::exec
