#include "exec/profiler/percentile.h"

#include <algorithm>

namespace dcsim::exec {
namespace {

std::int64_t Nth(std::vector<std::int64_t> values, std::size_t at) {
  if (values.empty()) {
    return 0;
  }
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

}  // namespace

std::int64_t Percentile(std::vector<std::int64_t> values, int percent) {
  const std::size_t last = values.empty() ? 0 : values.size() - 1;
  return Nth(std::move(values), last * static_cast<std::size_t>(percent) / 100);
}

std::int64_t Median(std::vector<std::int64_t> values) {
  const std::size_t middle = values.size() / 2;
  return Nth(std::move(values), middle);
}

}  // namespace dcsim::exec
