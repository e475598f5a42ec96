#include "exec/calibrate/fit_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/machine/contention.h"

namespace dcsim::exec {

TimeRange RangeOf(const std::vector<Duration>& times) {
  if (times.empty()) {
    return {};
  }
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  return {*least, *most, times.size()};
}

ShareRange RangeOf(const std::vector<double>& shares) {
  if (shares.empty()) {
    return {};
  }
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  return {Mean(shares), *least, *most, shares.size()};
}

double Mean(const std::vector<double>& values) {
  return values.empty() ? 1
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

Rate RateOf(double share) {
  constexpr double kLeast = 0.01;
  return Rate::Nearest(std::max(share, kLeast));
}

double Least(double from, double to, double step, const std::function<double(double)>& cost) {
  double best = from;
  double least = cost(from);
  for (double x = from + step; x <= to + step / 2; x += step) {
    const double here = cost(x);
    best = here < least ? x : best;
    least = std::min(least, here);
  }
  return best;
}

double SquaredLog(double a, double b) {
  const double difference = std::log(a / b);
  return difference * difference;
}

}  // namespace dcsim::exec
