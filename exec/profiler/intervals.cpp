#include "exec/profiler/intervals.h"

#include <algorithm>

namespace dcsim::exec {

Intervals Union(Intervals intervals) {
  std::sort(intervals.begin(), intervals.end());
  Intervals merged;
  for (const auto& [start, end] : intervals) {
    if (!merged.empty() && start <= merged.back().second) {
      merged.back().second = std::max(merged.back().second, end);
    } else {
      merged.emplace_back(start, end);
    }
  }
  return merged;
}

Duration Length(const Intervals& intervals) {
  std::int64_t total = 0;
  for (const auto& [start, end] : intervals) {
    total += end - start;
  }
  return Duration::FromNs(total);
}

Duration LengthOutside(const Intervals& a, const Intervals& b) {
  std::int64_t covered = 0;
  std::size_t j = 0;
  for (const auto& [start, end] : a) {
    while (j < b.size() && b[j].second <= start) {
      ++j;
    }
    for (std::size_t k = j; k < b.size() && b[k].first < end; ++k) {
      covered += std::min(end, b[k].second) - std::max(start, b[k].first);
    }
  }
  return Length(a) - Duration::FromNs(covered);
}

}  // namespace dcsim::exec
