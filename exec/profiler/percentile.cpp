#include "exec/profiler/percentile.h"

#include <algorithm>

namespace dcsim::exec {

std::int64_t Percentile(std::vector<std::int64_t> values, int percent) {
  if (values.empty()) {
    return 0;
  }
  const std::size_t at = (values.size() - 1) * static_cast<std::size_t>(percent) / 100;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

}  // namespace dcsim::exec
