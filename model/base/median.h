#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace dcsim {

/// The value in the middle, the upper one of two; T() without values.
template <typename T>
T Median(std::vector<T> values) {
  if (values.empty()) {
    return T();
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace dcsim
